// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.temporal.ChronoUnit;
import java.util.logging.ConsoleHandler;
import java.util.logging.Formatter;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The log of extensions, {@code dev.hookgate} of java.util.logging. It never has requests, settings or credentials. */
final class Log {
  static final Logger LOGGER = Logger.getLogger("dev.hookgate");

  /** A call, to be logged when it ends. */
  record Call(String hook, String handler, String id, long start) {
    void ended(String outcome) {
      boolean success = outcome.equals("Success");
      log(success ? Level.FINE : Level.INFO, success ? "call answered" : "call failed", outcome, null);
    }

    void broke(Throwable thrown) {
      log(Level.SEVERE, "handler threw " + thrown.getClass().getName(), "error", thrown);
    }

    private void log(Level level, String message, String outcome, Throwable thrown) {
      if (!LOGGER.isLoggable(level)) {
        return;
      }
      var record = new LogRecord(level, message + " {0} {1} callID={2} durationMs={3} outcome={4}");
      double milliseconds = (System.nanoTime() - start) / 1000 / 1e3;
      record.setParameters(new Object[] {hook, handler, id, milliseconds, outcome});
      record.setLoggerName(LOGGER.getName());
      record.setThrown(thrown);
      LOGGER.log(record);
    }
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
    private static final String[] MEMBERS = {"hook", "handler", "callID", "durationMs", "outcome"};

    @Override
    public String format(LogRecord record) {
      Object[] values = record.getParameters();
      String message = record.getMessage();
      var line = new StringBuilder("{");
      member(line, "time", record.getInstant().truncatedTo(ChronoUnit.MILLIS));
      member(line, "level", levelName(record.getLevel()));
      member(line, "message", values == null ? message : message.substring(0, message.indexOf(" {0}")));
      for (int i = 0; values != null && i < MEMBERS.length; i++) {
        member(line, MEMBERS[i], values[i]);
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
      if (value instanceof Double) {
        line.append(value);
      } else {
        line.append('"').append(JsonStringEncoder.getInstance().quoteAsString(value.toString())).append('"');
      }
    }

    private static String levelName(Level level) {
      if (level.intValue() >= Level.SEVERE.intValue()) {
        return "error";
      }
      if (level.intValue() >= Level.WARNING.intValue()) {
        return "warn";
      }
      return level.intValue() >= Level.INFO.intValue() ? "info" : "debug";
    }
  }

  private Log() {}
}
