// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import io.grpc.Status;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.temporal.ChronoUnit;
import java.util.LinkedHashMap;
import java.util.logging.ConsoleHandler;
import java.util.logging.Formatter;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The log of extensions, {@code dev.hookgate} of java.util.logging. It never has requests, settings or credentials. */
final class Log {
  static final Logger LOGGER = Logger.getLogger("dev.hookgate");

  private static final String PARAMETER = " {0}";

  /** A call, to be logged when it ends. The handler is empty if none was selected. */
  record Call(String hook, String handler, String id, long start) {
    Call(String hook, String handler, String id) {
      this(hook, handler, id, System.nanoTime());
    }

    void answered() {
      write(Level.FINE, "call answered", members(), null);
    }

    /** Logs that an answer is a Failure. */
    void refused(String error) {
      write(Level.INFO, "call failed", problem("Failure", null, error), null);
    }

    /** Logs that a call has ended with a status. */
    void ended(String kind, Status status) {
      ended(Level.INFO, kind, status);
    }

    /** Logs, at a level, that a call has ended with a status. */
    void ended(Level level, String kind, Status status) {
      String error = status.getDescription() == null ? "" : status.getDescription();
      write(level, "call failed", problem(kind, status.getCode(), error), null);
    }

    /** Logs what a handler has thrown. */
    void broke(Throwable thrown) {
      write(Level.SEVERE, "call failed", problem("Internal", null, thrown.toString()), thrown);
    }

    private Members members() {
      var members = new Members();
      members.put("hook", hook);
      if (!handler.isEmpty()) {
        members.put("handler", handler);
      }
      if (!id.isEmpty()) {
        members.put("call_id", id);
      }
      return members;
    }

    private Members problem(String kind, Status.Code code, String error) {
      Members members = members();
      members.put("kind", kind);
      if (code != null) {
        members.put("code", code.name());
      }
      members.put("error", error);
      return members;
    }

    private void write(Level level, String message, Members members, Throwable thrown) {
      members.put("took", System.nanoTime() - start);
      Log.write(level, message, members, thrown);
    }
  }

  /** Returns the kind of a status with which a handler has ended a call. */
  static String kindOf(Status status) {
    return status.getCode() == Status.Code.INVALID_ARGUMENT ? "InvalidRequest" : "Status";
  }

  /** The members of a line, besides its time, level and message. The packages of all languages write the same ones. */
  static final class Members extends LinkedHashMap<String, Object> {
    private static final long serialVersionUID = 1;
  }

  /** Says where the server listens. */
  static void listening(String address) {
    var members = new Members();
    members.put("address", address);
    write(Level.INFO, "listening on " + address, members, null);
  }

  private static void write(Level level, String message, Members members, Throwable thrown) {
    if (!LOGGER.isLoggable(level)) {
      return;
    }
    var record = new LogRecord(level, message + PARAMETER); // for other formatters
    record.setParameters(new Object[] {members});
    record.setLoggerName(LOGGER.getName());
    record.setThrown(thrown);
    LOGGER.log(record);
  }

  /** Writes lines of JSON to stderr, unless the application has configured logging. */
  static synchronized void configure() {
    boolean configured = System.getProperty("java.util.logging.config.file") != null
        || System.getProperty("java.util.logging.config.class") != null
        || LOGGER.getHandlers().length > 0
        || Logger.getLogger("").getHandlers().length != 1
        || Logger.getLogger("").getHandlers()[0].getClass() != ConsoleHandler.class;
    if (!configured) {
      var handler = new ConsoleHandler();
      handler.setFormatter(new Lines());
      handler.setLevel(Level.ALL); // that of the logger decides
      LOGGER.addHandler(handler);
      LOGGER.setUseParentHandlers(false);
    }
  }

  /** Formats each record as one line of JSON. */
  static final class Lines extends Formatter {
    @Override
    public String format(LogRecord record) {
      Object[] parameters = record.getParameters();
      boolean ours = parameters != null && parameters.length == 1 && parameters[0] instanceof Members;
      String message = record.getMessage();
      var line = new StringBuilder("{");
      member(line, "time", record.getInstant().truncatedTo(ChronoUnit.MILLIS));
      member(line, "level", levelName(record.getLevel()));
      member(line, "msg", ours ? message.substring(0, message.length() - PARAMETER.length()) : formatMessage(record));
      if (ours) {
        ((Members) parameters[0]).forEach((name, value) -> member(line, name, value));
      }
      if (record.getThrown() != null) {
        var stack = new StringWriter();
        record.getThrown().printStackTrace(new PrintWriter(stack, true));
        member(line, "stack", stack);
      }
      return line.append("}\n").toString();
    }

    /** Adds a member, without Jackson's mapper: a program that starts would wait for that. */
    private static void member(StringBuilder line, String name, Object value) {
      line.append(line.length() > 1 ? "," : "").append('"').append(name).append("\":");
      if (value instanceof Long) {
        line.append(value);
      } else {
        line.append('"').append(JsonStringEncoder.getInstance().quoteAsString(value.toString())).append('"');
      }
    }

    private static String levelName(Level level) {
      if (level.intValue() >= Level.SEVERE.intValue()) {
        return "ERROR";
      }
      if (level.intValue() >= Level.WARNING.intValue()) {
        return "WARN";
      }
      return level.intValue() >= Level.INFO.intValue() ? "INFO" : "DEBUG";
    }
  }

  private Log() {}
}
