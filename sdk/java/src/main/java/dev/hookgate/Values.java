// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;

/** The types of settings and variables. */
final class Values {
  private static final Map<Class<?>, String> NAMES = Map.of(
      String.class, "a string", Integer.class, "an integer", Long.class, "an integer", Double.class, "a number",
      Boolean.class, "true or false", JsonNode.class, "JSON");

  static String name(Class<?> type) {
    String name = NAMES.get(type);
    if (name == null) {
      throw new IllegalArgumentException(type.getName() + " is not a type of values: use one of String, Integer, Long, "
          + "Double, Boolean, and JsonNode for variables");
    }
    return name;
  }

  /** Returns the value of a text, or null if it is of another type. */
  static <T> T ofText(String text, Class<T> type) {
    name(type);
    try {
      Object value = null;
      if (type == String.class) {
        value = text;
      } else if (type == Integer.class) {
        value = Integer.valueOf(text);
      } else if (type == Long.class) {
        value = Long.valueOf(text);
      } else if (type == Double.class) {
        double number = Double.parseDouble(text);
        value = Double.isFinite(number) ? (Double) number : null;
      } else if (type == Boolean.class && (text.equals("true") || text.equals("false"))) {
        value = text.equals("true");
      }
      return type.cast(value);
    } catch (NumberFormatException e) {
      return null;
    }
  }

  /** Returns a value of JSON, or null if it is of another type. */
  static <T> T ofJson(JsonNode node, Class<T> type) {
    name(type);
    Object value = null;
    if (type == JsonNode.class) {
      value = node;
    } else if (type == String.class && node.isTextual()) {
      value = node.textValue();
    } else if (type == Integer.class && node.isIntegralNumber() && node.canConvertToInt()) {
      value = node.intValue();
    } else if (type == Long.class && node.isIntegralNumber() && node.canConvertToLong()) {
      value = node.longValue();
    } else if (type == Double.class && node.isNumber()) {
      value = node.doubleValue();
    } else if (type == Boolean.class && node.isBoolean()) {
      value = node.booleanValue();
    }
    return type.cast(value);
  }

  private Values() {}
}
