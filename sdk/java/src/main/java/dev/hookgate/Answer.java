// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import dev.hookgate.hooks.v1alpha1.ResponseStatus;
import java.util.Objects;

/** What a handler returns. It is immutable. */
public final class Answer {
  private final ResponseStatus status;
  private final String text;
  private final int seconds;
  private final Message message;

  private Answer(ResponseStatus status, String text, int seconds, Message message) {
    this.status = status;
    this.text = text;
    this.seconds = seconds;
    this.message = message;
  }

  /** Answers with status Success. */
  public static Answer done() {
    return new Answer(ResponseStatus.RESPONSE_STATUS_SUCCESS, "", 0, null);
  }

  /**
   * Asks the caller to call again after that many seconds, at least one.
   *
   * @param message tells people what it waits for
   */
  public static Answer wait(int seconds, String message) {
    if (seconds < 1 || Objects.requireNonNullElse(message, "").isEmpty()) {
      throw new IllegalArgumentException("wait needs at least one second, and a message");
    }
    return new Answer(ResponseStatus.RESPONSE_STATUS_SUCCESS, message, seconds, null);
  }

  /** Answers with status Failure, which a person must resolve. A handler may also throw a {@link Failure}. */
  public static Answer fail(String message) {
    return new Answer(ResponseStatus.RESPONSE_STATUS_FAILURE, message, 0, null);
  }

  /** Answers with a response of the stubs, whose status is set to Success if it was left unset. */
  public static Answer of(Message response) {
    return new Answer(null, "", 0, Objects.requireNonNull(response));
  }

  /** Answers with a response of the stubs, whose status is set to Success if it was left unset. */
  public static Answer of(Message.Builder response) {
    return of(response.build());
  }

  /** Returns the response of a hook, or throws an IllegalStateException if the hook cannot be answered so. */
  Message response(String hook, Descriptor type) {
    FieldDescriptor statusField = type.findFieldByName("status");
    if (message != null) {
      if (!message.getDescriptorForType().getFullName().equals(type.getFullName())) {
        throw new IllegalStateException("%s is answered with a %s, not a %s"
            .formatted(hook, type.getFullName(), message.getDescriptorForType().getFullName()));
      }
      boolean unset = statusField != null && !message.hasField(statusField);
      return unset ? message.toBuilder().setField(statusField, success(statusField)).build() : message;
    }
    if (statusField == null) {
      throw new IllegalStateException(hook + " has no status: return its response");
    }
    FieldDescriptor secondsField = type.findFieldByName("retry_after_seconds");
    if (seconds > 0 && secondsField == null) {
      throw new IllegalStateException(hook + " cannot wait: its response has no retry_after_seconds");
    }
    DynamicMessage.Builder response = DynamicMessage.newBuilder(type)
        .setField(statusField, statusField.getEnumType().findValueByNumber(status.getNumber()));
    FieldDescriptor textField = type.findFieldByName("message");
    if (textField != null) {
      response.setField(textField, text);
    }
    if (seconds > 0) {
      response.setField(secondsField, seconds);
    }
    return response.build();
  }

  /** Returns the message of a response that is a Failure, or null if it is none. */
  static String problem(Message response) {
    FieldDescriptor field = response.getDescriptorForType().findFieldByName("status");
    boolean failed = field != null && response.getField(field) instanceof EnumValueDescriptor value
        && value.getNumber() == ResponseStatus.RESPONSE_STATUS_FAILURE_VALUE;
    FieldDescriptor text = response.getDescriptorForType().findFieldByName("message");
    return failed ? text == null ? "" : response.getField(text).toString() : null;
  }

  private static Object success(FieldDescriptor status) {
    return status.getEnumType().findValueByNumber(ResponseStatus.RESPONSE_STATUS_SUCCESS_VALUE);
  }
}
