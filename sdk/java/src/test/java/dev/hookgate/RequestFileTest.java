// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import dev.hookgate.hooks.v1alpha1.*;
import dev.hookgate.infrastructure.v1alpha1.*;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests from files. */
class RequestFileTest {
  private static final Path VECTORS = Path.of("../../proto/testdata");

  @ParameterizedTest
  @ValueSource(classes = {
      BeforeClusterCreateRequest.class, BeforeClusterUpgradeRequest.class, CanUpdateMachineRequest.class,
      GeneratePatchesRequest.class, GenerateUpgradePlanRequest.class, ValidateTopologyRequest.class,
      ReconcileMachineRequest.class, ReconcileClusterRequest.class})
  <Q extends Message> void goldenVectors(Class<Q> request) throws Exception {
    String group = request.getName().contains(".infrastructure.") ? "infrastructure/v1alpha1/" : "v1alpha1/";
    String hook = request.getSimpleName().replaceAll("Request$", "").toLowerCase();
    Message got = Requests.read(request, VECTORS.resolve(group + hook + ".request.json"));
    byte[] encoded = Files.readAllBytes(VECTORS.resolve(group + hook + ".request.binpb"));
    Message want = got.getParserForType().parseFrom(encoded);
    assertEquals(plain(want), plain(got));
  }

  /** Returns a message as a value in which JSON has no other spellings, and maps an order. */
  private static Object plain(Object value) {
    if (value instanceof List<?> list) {
      if (!list.isEmpty() && list.get(0) instanceof Message entry
          && entry.getDescriptorForType().getOptions().getMapEntry()) {
        var map = new TreeMap<String, Object>();
        list.forEach(e -> map.put((String) field(e, "key"), plain(field(e, "value"))));
        return map;
      }
      return list.stream().map(RequestFileTest::plain).toList();
    }
    if (!(value instanceof Message message)) {
      return value;
    }
    var members = new TreeMap<String, Object>();
    message.getAllFields().forEach((field, v) -> members.put(field.getName(),
        field.getName().equals("raw") ? Json.read("raw", (ByteString) v) : plain(v)));
    return members;
  }

  private static Object field(Object message, String name) {
    return ((Message) message).getField(((Message) message).getDescriptorForType().findFieldByName(name));
  }

  @Test
  void exampleInYaml() throws Exception {
    var request =
        Requests.read(BeforeClusterCreateRequest.class, Path.of("../../examples/requests/before-cluster-create.yaml"));
    assertEquals("Cluster", Requests.load(request, "cluster").get("kind").asText());
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
      "[]| want an object", "kind: DiscoveryRequest| kind is \"DiscoveryRequest\", want GeneratePatchesRequest",
      "settings: 3| settings: want an object", "settings: {a: 3}| settings.a: want a string",
      "items: [3]| items[0]: want an object", "items: {}| items: want a list"})
  void whatIsNoRequest(String text, String want, @TempDir Path folder) throws Exception {
    Path file = Files.writeString(folder.resolve("request.yaml"), text);
    var thrown =
        assertThrows(IllegalArgumentException.class, () -> Requests.read(GeneratePatchesRequest.class, file));
    assertEquals(file + " is no GeneratePatchesRequest: " + want, thrown.getMessage());
  }

  @ParameterizedTest
  @ValueSource(strings = {"x.json", "x.yaml"})
  void whatCannotBeParsed(String name, @TempDir Path folder) throws Exception {
    Path file = Files.writeString(folder.resolve(name), "{\"settings\": {");
    var thrown =
        assertThrows(IllegalArgumentException.class, () -> Requests.read(GeneratePatchesRequest.class, file));
    String want = file + " is no GeneratePatchesRequest: ";
    assertTrue(thrown.getMessage().startsWith(want) && thrown.getMessage().contains("line"), thrown.getMessage());
  }

  @Test
  void noFile(@TempDir Path folder) {
    for (String name : List.of("x.json", "x.yaml")) {
      Path file = folder.resolve(name);
      var thrown = assertThrows(IOException.class, () -> Requests.read(GeneratePatchesRequest.class, file));
      assertTrue(thrown.getMessage().contains(file.toString()), thrown.toString());
    }
  }
}
