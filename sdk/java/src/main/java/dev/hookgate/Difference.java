// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/** JSON pointers (RFC 6901), and the differences of two values as patches. */
final class Difference {
  /** Compares numbers by value: 1 equals 1.0. */
  private static final Comparator<JsonNode> NUMBERS = (a, b) -> {
    if (a.isNumber() && b.isNumber()) {
      return a.decimalValue().compareTo(b.decimalValue());
    }
    return a.equals(b) ? 0 : 1;
  };

  /** Returns the unescaped segments of a pointer, of which there is one at least. */
  static List<String> segments(String pointer) {
    if (!pointer.startsWith("/")) {
      throw new IllegalArgumentException("\"" + pointer + "\" is not a JSON pointer: it begins with /");
    }
    List<String> segments = new ArrayList<>();
    for (String segment : pointer.substring(1).split("/", -1)) {
      segments.add(segment.replace("~1", "/").replace("~0", "~"));
    }
    return segments;
  }

  /** Sets a value. Parents that are missing or null become objects; {@code -} is the end of a list. */
  static void set(ObjectNode root, String pointer, JsonNode value) {
    List<String> segments = segments(pointer);
    JsonNode place = root;
    for (int i = 0; i < segments.size(); i++) {
      boolean last = i == segments.size() - 1;
      String segment = segments.get(i);
      JsonNode next = last ? value : child(place, segment);
      if (next == null || !last && next.isNull()) {
        next = Json.object();
      }
      if (place instanceof ObjectNode object) {
        object.set(segment, next);
      } else if (place instanceof ArrayNode array && (segment.equals("-") || segment.equals("" + array.size()))) {
        array.add(next);
      } else if (place instanceof ArrayNode array && index(array, segment) >= 0) {
        array.set(index(array, segment), next);
      } else {
        throw new IllegalArgumentException(pointer + ": there is no place for " + segment);
      }
      place = next;
    }
  }

  /** Removes what is at a pointer, if there is something. */
  static void remove(ObjectNode root, String pointer) {
    List<String> segments = segments(pointer);
    JsonNode place = root;
    for (String segment : segments.subList(0, segments.size() - 1)) {
      place = child(place, segment);
    }
    String last = segments.get(segments.size() - 1);
    if (place instanceof ObjectNode object) {
      object.remove(last);
    } else if (place instanceof ArrayNode array && index(array, last) >= 0) {
      array.remove(index(array, last));
    }
  }

  private static JsonNode child(JsonNode place, String segment) {
    if (place instanceof ArrayNode array) {
      return index(array, segment) < 0 ? null : array.get(index(array, segment));
    }
    return place == null ? null : place.get(segment);
  }

  /** Returns the index that a segment is, or -1 if the list has no such element. */
  private static int index(ArrayNode array, String segment) {
    if (!segment.matches("0|[1-9][0-9]{0,8}")) {
      return -1;
    }
    int index = Integer.parseInt(segment);
    return index < array.size() ? index : -1;
  }

  /** Adds the operations of the JSON patch (RFC 6902) that makes one object, or list, another one. */
  static void patch(String path, JsonNode before, JsonNode after, ArrayNode operations) {
    if (before.isObject()) {
      for (Map.Entry<String, JsonNode> member : before.properties()) {
        String at = path + "/" + member.getKey().replace("~", "~0").replace("/", "~1");
        JsonNode now = after.get(member.getKey());
        if (now == null) {
          operations.addObject().put("op", "remove").put("path", at);
        } else {
          change(at, "add", member.getValue(), now, operations);
        }
      }
      for (Map.Entry<String, JsonNode> member : after.properties()) {
        if (!before.has(member.getKey())) {
          String at = path + "/" + member.getKey().replace("~", "~0").replace("/", "~1");
          operations.addObject().put("op", "add").put("path", at).set("value", member.getValue());
        }
      }
      return;
    }
    for (int i = 0; i < before.size(); i++) {
      change(path + "/" + i, "replace", before.get(i), after.get(i), operations);
    }
    for (int i = before.size(); i < after.size(); i++) {
      operations.addObject().put("op", "add").put("path", path + "/-").set("value", after.get(i));
    }
  }

  private static void change(String path, String operation, JsonNode before, JsonNode after, ArrayNode operations) {
    if (before.isObject() && after.isObject() || before.isArray() && after.isArray() && begins(before, after)) {
      patch(path, before, after, operations);
    } else if (!equal(before, after)) {
      operations.addObject().put("op", operation).put("path", path).set("value", after);
    }
  }

  /** Reports whether a list has the length of another one, or is longer and begins with it. */
  private static boolean begins(JsonNode before, JsonNode after) {
    boolean begins = before.size() <= after.size();
    for (int i = 0; begins && before.size() < after.size() && i < before.size(); i++) {
      begins = equal(before.get(i), after.get(i));
    }
    return begins;
  }

  static boolean equal(JsonNode a, JsonNode b) {
    return a.equals(NUMBERS, b);
  }

  /** Returns the JSON merge patch (RFC 7386) between two values, which may be missing, or null if they are equal. */
  static JsonNode merge(JsonNode before, JsonNode after) {
    if (after.isMissingNode()) {
      return before.isMissingNode() ? null : NullNode.getInstance();
    }
    if (!before.isObject() || !after.isObject()) {
      return equal(before, after) ? null : after;
    }
    ObjectNode patch = Json.object();
    for (JsonNode side : List.of(before, after)) {
      for (Map.Entry<String, JsonNode> member : side.properties()) {
        JsonNode change = merge(before.path(member.getKey()), after.path(member.getKey()));
        if (change != null) {
          patch.set(member.getKey(), change);
        }
      }
    }
    return patch.isEmpty() ? null : patch;
  }

  private Difference() {}
}
