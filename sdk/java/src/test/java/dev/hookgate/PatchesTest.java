// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import dev.hookgate.hooks.v1alpha1.*;
import io.grpc.StatusRuntimeException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class PatchesTest {
  private static RawExtension raw(String text) {
    return RawExtension.newBuilder().setRaw(ByteString.copyFromUtf8(text)).build();
  }

  private static Variable variable(String name, String value) {
    var json = JSON.newBuilder().setRaw(ByteString.copyFromUtf8(value));
    return Variable.newBuilder().setName(name).setValue(json).build();
  }

  static Stream<Arguments> vectors() throws Exception {
    var text = ByteString.copyFrom(Files.readAllBytes(Path.of("../testdata/patches.json")));
    return StreamSupport.stream(Json.read("patches.json", text).spliterator(), false)
        .map(vector -> Arguments.of(vector.path("name").asText(), vector));
  }

  /** The vectors that all languages share. */
  @ParameterizedTest(name = "{0}")
  @MethodSource
  void vectors(String name, JsonNode vector) throws Exception {
    var request = GeneratePatchesRequest.newBuilder()
        .addItems(GeneratePatchesRequestItem.newBuilder().setObject(raw(Json.write(vector.get("object")))))
        .build();
    var patches = new Patches(request);
    Patches.Item item = patches.items().get(0);
    for (JsonNode edit : vector.path("edit")) {
      if (edit.has("set")) {
        item.set(edit.get("set").asText(), edit.get("value"));
      } else {
        item.remove(edit.get("remove").asText());
      }
    }
    if (vector.has("edited")) {
      item.object().removeAll();
      item.object().setAll((ObjectNode) vector.get("edited"));
    }
    var answer = (GeneratePatchesResponse) patches.answer().response("", GeneratePatchesResponse.getDescriptor());
    String got = answer.getItemsCount() == 0 ? "[]" : answer.getItems(0).getPatch().toStringUtf8();
    assertEquals(Json.write(vector.get("want")), got); // as text, in which 1 is not 1.0
  }

  @Test
  void variables() {
    var request = GeneratePatchesRequest.newBuilder()
        .addVariables(variable("shared", "\"of the request\""))
        .addVariables(variable("both", "1"))
        .addVariables(variable("builtin", "{\"cluster\": {\"name\": \"c\", \"x\": 1}}"))
        .addVariables(variable("proxy", "{\"noProxy\": [\"a\", \"b\"]}"))
        .addItems(GeneratePatchesRequestItem.newBuilder()
            .addVariables(variable("both", "2"))
            .addVariables(variable("builtin", "{\"cluster\": {\"x\": 2}, \"controlPlane\": {}}")))
        .build();
    Patches.Item item = new Patches(request).items().get(0);
    assertEquals("of the request", item.variable("shared", String.class));
    assertEquals(2, item.variable("both", 0));
    assertEquals("c", item.variable("builtin.cluster.name", String.class));
    assertEquals(2L, item.variable("builtin.cluster.x", Long.class));
    assertEquals("b", item.variable("proxy.noProxy[1]", String.class));
    assertEquals("none", item.variable("proxy.noProxy[2]", "none"));
    assertEquals("variable \"missing\" is not set",
        assertThrows(Failure.class, () -> item.variable("missing", String.class)).getMessage());
    assertEquals("variable \"both\" is not a string",
        assertThrows(Failure.class, () -> item.variable("both", "")).getMessage());
    assertThrows(IllegalArgumentException.class, () -> item.variable("a[x]", ""));
  }

  @Test
  void itemsOfOtherKindsAreNotDecoded() {
    var request = GeneratePatchesRequest.newBuilder()
        .addItems(GeneratePatchesRequestItem.newBuilder().setObject(raw("{\"kind\": \"Other\", not JSON")))
        .addItems(GeneratePatchesRequestItem.newBuilder()
            .setObject(raw("{\"spec\": {\"kind\": \"Other\"}, \"kind\": \"K\"}")))
        .build();
    List<Patches.Item> items = new Patches(request).items("K");
    assertEquals(1, items.size());
    assertEquals("Other", items.get(0).object().at("/spec/kind").asText());

    var wrong = GeneratePatchesRequest.newBuilder()
        .addItems(GeneratePatchesRequestItem.newBuilder().setObject(raw("[]")))
        .build();
    assertEquals("INVALID_ARGUMENT: items[0].object: not a JSON object",
        assertThrows(StatusRuntimeException.class, () -> new Patches(wrong).items("K")).getMessage());
  }

  @Test
  void rootStaysAnObject() {
    var request = GeneratePatchesRequest.newBuilder()
        .addItems(GeneratePatchesRequestItem.newBuilder().setObject(raw("{}")))
        .build();
    Patches.Item item = new Patches(request).items().get(0);
    String want = "items[0].object: a patch cannot replace the whole object";
    assertEquals(want, assertThrows(Failure.class, () -> item.set("", List.of())).getMessage());
    assertEquals(want, assertThrows(Failure.class, () -> item.remove("")).getMessage());
  }

  @Test
  void coversWhatDiffersAtThePlaces() {
    String current = "{\"spec\": {\"version\": \"1\", \"other\": 1, \"gone\": {\"a\": 1}, \"list\": [1]}}";
    String desired = "{\"spec\": {\"version\": \"2\", \"other\": 2, \"list\": [2]}}";
    var request = CanUpdateMachineRequest.newBuilder()
        .setCurrent(CanUpdateMachineRequestObjects.newBuilder().setMachine(raw(current)))
        .setDesired(CanUpdateMachineRequestObjects.newBuilder().setMachine(raw(desired)))
        .build();
    Patch patch = Requests.covers(request, Map.of("machine", List.of("/spec/version", "/spec/gone", "/spec/missing")))
        .getMachinePatch();
    assertEquals(PatchType.PATCH_TYPE_JSON_MERGE_PATCH, patch.getPatchType());
    assertEquals("{\"spec\":{\"version\":\"2\",\"gone\":null}}", patch.getPatch().toStringUtf8());
    assertFalse(Requests.covers(request, Map.of("machine", List.of("/metadata"))).hasMachinePatch());
    assertThrows(IllegalArgumentException.class,
        () -> Requests.covers(request, Map.of("machine", List.of("/spec/list/0"))));
  }

  @Test
  void selections() {
    var request = GeneratePatchesRequest.newBuilder();
    for (String[] item : new String[][] {
        {"1", "a.example/v1", "Template", "Cluster"}, {"2", "b.example/v1", "Template", "MachineDeployment"},
        {"3", "b.example/v1", "Other", "MachineDeployment"}, {"4", "v1", "Other", ""}}) {
      request.addItems(GeneratePatchesRequestItem.newBuilder()
          .setUid(item[0])
          .setObject(raw("{\"apiVersion\": \"" + item[1] + "\", \"kind\": \"" + item[2] + "\"}"))
          .setHolderReference(HolderReference.newBuilder().setKind(item[3])));
    }
    var patches = new Patches(request.build());
    var all = Patches.Selection.all();
    assertEquals(List.of("1", "2", "3", "4"), uids(patches, all));
    assertEquals(List.of("1", "2"), uids(patches, all.withKind("Template")));
    assertEquals(List.of("2", "3"), uids(patches, all.withGroup("b.example")));
    assertEquals(List.of(), uids(patches, all.withGroup("v1")));
    assertEquals(List.of("3"), uids(patches, all.withHolder("MachineDeployment").withKind("Other")));
    assertEquals(List.of(), uids(patches, all.withHolder("Cluster").withGroup("b.example")));
  }

  private static List<String> uids(Patches patches, Patches.Selection selection) {
    return patches.items(selection).stream().map(Patches.Item::uid).toList();
  }
}
