// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import dev.hookgate.hooks.v1alpha1.CanUpdateMachineRequest;
import dev.hookgate.hooks.v1alpha1.CanUpdateMachineResponse;
import dev.hookgate.hooks.v1alpha1.CanUpdateMachineSetRequest;
import dev.hookgate.hooks.v1alpha1.CanUpdateMachineSetResponse;
import dev.hookgate.hooks.v1alpha1.Patch;
import dev.hookgate.hooks.v1alpha1.PatchType;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Reads the objects and the settings of requests. */
public final class Requests {
  /**
   * Reads a request from a file, for tests: the contract's JSON, or YAML of the same form, as {@code hookgate call HOOK
   * --example} prints it. YAML needs {@code com.fasterxml.jackson.dataformat:jackson-dataformat-yaml}.
   *
   * @throws IOException if the file cannot be read
   * @throws IllegalArgumentException if it is not the request of this class; its text says what is wrong
   * @throws IllegalStateException if the module for YAML is missing
   */
  public static <Q extends Message> Q read(Class<Q> request, Path file) throws IOException {
    Message.Builder builder = com.google.protobuf.Internal.getDefaultInstance(request).newBuilderForType();
    RequestFile.read(file, builder);
    return request.cast(builder.build());
  }

  /**
   * Returns the object of a request at a path of the names that the contract's JSON has, such as {@code cluster},
   * {@code current.machine} or {@code items[0].object}. What is not a JSON object is the caller's mistake:
   * INVALID_ARGUMENT, whose text begins with the path.
   */
  public static ObjectNode load(Message request, String path) {
    Message message = request;
    for (String segment : path.split("\\.")) {
      int bracket = segment.indexOf('[');
      String name = bracket < 0 ? segment : segment.substring(0, bracket);
      FieldDescriptor field = message.getDescriptorForType().getFields().stream()
          .filter(f -> f.getJsonName().equals(name) && f.getJavaType() == FieldDescriptor.JavaType.MESSAGE)
          .filter(f -> f.isRepeated() == bracket >= 0)
          .findFirst()
          .orElseThrow(() -> new IllegalArgumentException(
              request.getDescriptorForType().getName() + " has no object at " + path));
      message = bracket < 0
          ? (Message) message.getField(field)
          : (Message) message.getRepeatedField(
              field, Integer.parseInt(segment.substring(bracket + 1, segment.length() - 1)));
    }
    FieldDescriptor raw = message.getDescriptorForType().findFieldByName("raw");
    if (raw == null || raw.getJavaType() != FieldDescriptor.JavaType.BYTE_STRING) {
      throw new IllegalArgumentException(request.getDescriptorForType().getName() + " has no object at " + path);
    }
    return Json.readObject(path, (ByteString) message.getField(raw));
  }

  /** Returns a setting as a String, Integer, Long, Double or Boolean. It is a Failure if it is missing or no such. */
  public static <T> T setting(Map<String, String> settings, String name, Class<T> type) {
    String text = settings.get(name);
    if (text == null) {
      throw new Failure("setting \"" + name + "\" is not set");
    }
    T value = Values.ofText(text, type);
    if (value == null) {
      throw new Failure("setting \"" + name + "\": want " + Values.name(type));
    }
    return value;
  }

  /** Returns a setting of the type of the default, which it is if it is not set. */
  @SuppressWarnings("unchecked") // the class of a T
  public static <T> T setting(Map<String, String> settings, String name, T defaultValue) {
    return settings.containsKey(name) ? setting(settings, name, (Class<T>) defaultValue.getClass()) : defaultValue;
  }

  /**
   * Returns the answer that offers to make the current objects as desired at these places, and nowhere else. Names are
   * those of the contract's JSON, and places JSON pointers: {@code Map.of("machine", List.of("/spec/version"))}.
   */
  public static CanUpdateMachineResponse covers(CanUpdateMachineRequest request, Map<String, List<String>> places) {
    return cover(request, places, CanUpdateMachineResponse.newBuilder()).build();
  }

  /** Does so for a MachineSet and its templates. */
  public static CanUpdateMachineSetResponse covers(
      CanUpdateMachineSetRequest request, Map<String, List<String>> places) {
    return cover(request, places, CanUpdateMachineSetResponse.newBuilder()).build();
  }

  private static <B extends Message.Builder> B cover(Message request, Map<String, List<String>> places, B response) {
    places.forEach((name, pointers) -> {
      JsonNode current = load(request, "current." + name);
      JsonNode desired = load(request, "desired." + name);
      ObjectNode patch = Json.object();
      for (String pointer : pointers) {
        JsonNode before = current;
        JsonNode after = desired;
        for (String segment : Difference.segments(pointer)) {
          if (before.isArray() || after.isArray()) {
            throw new IllegalArgumentException(
                pointer + ": a merge patch cannot change a part of a list: name the list");
          }
          before = before.path(segment);
          after = after.path(segment);
        }
        JsonNode change = Difference.merge(before, after);
        if (change != null) {
          Difference.set(patch, pointer, change);
        }
      }
      if (!patch.isEmpty()) {
        FieldDescriptor field = response.getDescriptorForType().getFields().stream()
            .filter(f -> f.getJsonName().equals(name + "Patch"))
            .findFirst()
            .orElseThrow();
        response.setField(field, Patch.newBuilder()
            .setPatchType(PatchType.PATCH_TYPE_JSON_MERGE_PATCH)
            .setPatch(Json.encode(patch))
            .build());
      }
    });
    return response;
  }

  private Requests() {}
}
