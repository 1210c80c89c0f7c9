// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.dataformat.yaml.YAMLFactory;
import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.EnumDescriptor;
import com.google.protobuf.Descriptors.EnumValueDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Requests in files. The contract's JSON is not protobuf's: objects are inlined, enums are Cluster API's strings, and
 * members that the contract does not know are kept in unknown_members.
 */
final class RequestFile {
  private static final String UNKNOWN = "unknown_members";

  /** Reads a file into a message. */
  static void read(Path file, Message.Builder into) throws IOException {
    Descriptor type = into.getDescriptorForType();
    ObjectMapper mapper = file.toString().endsWith(".json") ? Json.MAPPER : yaml();
    byte[] text = Files.readAllBytes(file);
    try {
      if (!(mapper.readTree(text) instanceof ObjectNode object)) {
        throw new IllegalArgumentException("want an object");
      }
      object.remove("apiVersion");
      JsonNode kind = object.remove("kind");
      if (kind != null && !kind.asText().equals(type.getName())) {
        throw new IllegalArgumentException("kind is " + kind + ", want " + type.getName());
      }
      fill(into, object, "");
    } catch (JsonProcessingException | RuntimeException e) {
      throw new IllegalArgumentException(file + " is no " + type.getName() + ": " + e.getMessage(), e);
    }
  }

  private static ObjectMapper yaml() {
    try {
      return Yaml.MAPPER;
    } catch (NoClassDefFoundError e) {
      throw new IllegalStateException(
          "to read YAML, add com.fasterxml.jackson.dataformat:jackson-dataformat-yaml to the test's dependencies", e);
    }
  }

  /** What is loaded with Jackson's module for YAML only. */
  private static final class Yaml {
    private static final ObjectMapper MAPPER = new ObjectMapper(new YAMLFactory());
  }

  private static void fill(Message.Builder into, JsonNode value, String place) {
    Descriptor type = into.getDescriptorForType();
    FieldDescriptor raw = type.findFieldByName("raw");
    if (raw != null && type.getFields().size() == 1) {
      into.setField(raw, Json.encode(value));
      return;
    }
    if (!value.isObject()) {
      throw want(place, "an object");
    }
    for (Map.Entry<String, JsonNode> member : value.properties()) {
      String name = member.getKey();
      String at = place.isEmpty() ? name : place + "." + name;
      FieldDescriptor field = type.getFields().stream()
          .filter(f -> f.getJsonName().equals(name) && !f.getName().equals(UNKNOWN))
          .findFirst().orElse(null);
      if (field == null) {
        FieldDescriptor unknown = type.findFieldByName(UNKNOWN);
        if (unknown == null) {
          throw new IllegalArgumentException(at + ": there is no such member");
        }
        entry(into, unknown, name, member.getValue(), at);
      } else if (!member.getValue().isNull()) { // null is as good as absent
        set(into, field, member.getValue(), at);
      }
    }
  }

  private static void set(Message.Builder into, FieldDescriptor field, JsonNode value, String place) {
    if (field.isMapField()) {
      if (!value.isObject()) {
        throw want(place, "an object");
      }
      value.properties().forEach(m -> entry(into, field, m.getKey(), m.getValue(), place + "." + m.getKey()));
    } else if (field.isRepeated()) {
      if (!value.isArray()) {
        throw want(place, "a list");
      }
      for (int i = 0; i < value.size(); i++) {
        into.addRepeatedField(field, valueOf(into, field, value.get(i), place + "[" + i + "]"));
      }
    } else {
      into.setField(field, valueOf(into, field, value, place));
    }
  }

  private static void entry(Message.Builder into, FieldDescriptor map, String name, JsonNode value, String place) {
    Message.Builder entry = into.newBuilderForField(map);
    FieldDescriptor field = map.getMessageType().findFieldByName("value");
    entry.setField(map.getMessageType().findFieldByName("key"), name);
    entry.setField(field, valueOf(entry, field, value, place));
    into.addRepeatedField(map, entry.build());
  }

  private static Object valueOf(Message.Builder parent, FieldDescriptor field, JsonNode value, String place) {
    switch (field.getJavaType()) {
      case MESSAGE:
        Message.Builder message = parent.newBuilderForField(field);
        fill(message, value, place);
        return message.build();
      case ENUM:
        return field.getEnumType().getValues().stream()
            .filter(v -> v.getNumber() != 0 && value.isTextual() && text(v).equals(value.asText()))
            .findFirst().orElseThrow(() -> want(place, "one of " + texts(field.getEnumType())));
      case STRING:
        return check(value.isTextual(), value.asText(), place, "a string");
      case BOOLEAN:
        return check(value.isBoolean(), value.asBoolean(), place, "true or false");
      case INT:
        boolean fits = value.canConvertToInt() && value.isIntegralNumber();
        return check(fits, value.asInt(), place, "an integer of 32 bits");
      case LONG:
        return check(value.canConvertToLong() && value.isIntegralNumber(), value.asLong(), place, "an integer");
      case BYTE_STRING:
        try {
          return ByteString.copyFrom(value.binaryValue());
        } catch (IOException | NullPointerException e) {
          throw want(place, "base64");
        }
      default:
        return check(value.isNumber(), value.asDouble(), place, "a number");
    }
  }

  private static Object check(boolean right, Object value, String place, String what) {
    if (!right) {
      throw want(place, what);
    }
    return value;
  }

  private static IllegalArgumentException want(String place, String what) {
    return new IllegalArgumentException((place.isEmpty() ? "" : place + ": ") + "want " + what);
  }

  private static String texts(EnumDescriptor type) {
    return type.getValues().stream().filter(v -> v.getNumber() != 0).map(RequestFile::text)
        .collect(Collectors.joining(", "));
  }

  /** Returns the text of an enum's value: FAILURE_POLICY_IGNORE is Ignore. */
  private static String text(EnumValueDescriptor value) {
    int prefix = value.getType().getName().replaceAll("(?<=.)(?=[A-Z])", "_").length() + 1;
    var text = new StringBuilder();
    for (String word : value.getName().substring(prefix).split("_")) {
      text.append(word.equals("JSON") ? word : word.charAt(0) + word.substring(1).toLowerCase(java.util.Locale.ROOT));
    }
    return text.toString();
  }

  private RequestFile() {}
}
