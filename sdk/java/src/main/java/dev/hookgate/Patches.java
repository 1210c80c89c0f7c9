// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import dev.hookgate.hooks.v1alpha1.GeneratePatchesRequest;
import dev.hookgate.hooks.v1alpha1.GeneratePatchesRequestItem;
import dev.hookgate.hooks.v1alpha1.GeneratePatchesResponse;
import dev.hookgate.hooks.v1alpha1.GeneratePatchesResponseItem;
import dev.hookgate.hooks.v1alpha1.HolderReference;
import dev.hookgate.hooks.v1alpha1.PatchType;
import dev.hookgate.hooks.v1alpha1.ResponseStatus;
import dev.hookgate.hooks.v1alpha1.Variable;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The templates of a GeneratePatches request, to edit. The answer has a JSON patch for each that differs then. It is
 * for one thread.
 */
public final class Patches {
  private static final Pattern STEP = Pattern.compile("([^\\[\\]]+)(?:\\[([0-9]{1,9})])?");

  private final GeneratePatchesRequest request;
  private final List<Item> items = new ArrayList<>();

  /** Makes the templates of a request. They are decoded when they are looked into. */
  public Patches(GeneratePatchesRequest request) {
    this.request = request;
    for (int i = 0; i < request.getItemsCount(); i++) {
      items.add(new Item("items[" + i + "].object", request.getItems(i)));
    }
  }

  /** Returns all templates. */
  public List<Item> items() {
    return List.copyOf(items);
  }

  /** Returns the templates of a kind, as the request has it. The other ones are not decoded. */
  public List<Item> items(String kind) {
    return items.stream().filter(item -> kind.equals(item.kind())).toList();
  }

  /**
   * Returns the templates of a selection, such as {@code Selection.all().withGroup("controlplane.cluster.x-k8s.io")}.
   * Only what it asks for is decoded.
   */
  public List<Item> items(Selection selection) {
    return items.stream().filter(item -> item.matches(selection)).toList();
  }

  /**
   * Which templates of a request are meant; null means any.
   *
   * @param kind that of the template
   * @param group the API group of the template
   * @param holder the kind of the object that uses the template, such as MachineDeployment
   */
  public record Selection(String kind, String group, String holder) {
    /** Returns the selection of all templates. */
    public static Selection all() {
      return new Selection(null, null, null);
    }

    /** Returns a copy that wants a kind. */
    public Selection withKind(String kind) {
      return new Selection(kind, group, holder);
    }

    /** Returns a copy that wants an API group. */
    public Selection withGroup(String group) {
      return new Selection(kind, group, holder);
    }

    /** Returns a copy that wants a kind of the object that uses the template. */
    public Selection withHolder(String holder) {
      return new Selection(kind, group, holder);
    }
  }

  /** Returns the answer: a patch for each template that was changed, in the order of the request. */
  public Answer answer() {
    var response = GeneratePatchesResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS);
    for (Item item : items) {
      ArrayNode operations = (ArrayNode) Json.valueOf(List.of());
      if (item.edited != null) {
        Difference.patch("", item.before, item.edited, operations);
      }
      if (!operations.isEmpty()) {
        response.addItems(GeneratePatchesResponseItem.newBuilder()
            .setUid(item.item.getUid())
            .setPatchType(PatchType.PATCH_TYPE_JSON_PATCH)
            .setPatch(Json.encode(operations)));
      }
    }
    return Answer.of(response);
  }

  /** One template of the request. */
  public final class Item {
    private final String member;
    private final GeneratePatchesRequestItem item;
    private ObjectNode before;
    private ObjectNode edited;

    private Item(String member, GeneratePatchesRequestItem item) {
      this.member = member;
      this.item = item;
    }

    /** Returns a copy of the template, to read and to edit. */
    public ObjectNode object() {
      if (edited == null) {
        before = Json.readObject(member, item.getObject().getRaw());
        edited = before.deepCopy();
      }
      return edited;
    }

    private boolean matches(Selection selection) {
      return (selection.holder() == null || selection.holder().equals(holder().getKind()))
          && (selection.kind() == null || selection.kind().equals(kind()))
          && (selection.group() == null || selection.group().equals(group()));
    }

    private String group() {
      String version = Json.readMember(member, item.getObject().getRaw(), "apiVersion");
      return version == null || version.indexOf('/') < 0 ? "" : version.substring(0, version.indexOf('/'));
    }

    private String kind() {
      return Json.readMember(member, item.getObject().getRaw(), "kind");
    }

    /** Returns what identifies the template in the request. */
    public String uid() {
      return item.getUid();
    }

    /** Returns the object that uses the template. */
    public HolderReference holder() {
      return item.getHolderReference();
    }

    /** Sets a value at a JSON pointer, and makes the parents that are missing or null. */
    public void set(String pointer, Object value) {
      refuseRoot(pointer);
      Difference.set(object(), pointer, Json.valueOf(value));
    }

    /** Removes what is at a JSON pointer, if there is something. */
    public void remove(String pointer) {
      refuseRoot(pointer);
      Difference.remove(object(), pointer);
    }

    private void refuseRoot(String pointer) {
      if (pointer.isEmpty()) {
        throw new Failure(member + ": a patch cannot replace the whole object");
      }
    }

    /**
     * Returns a variable of the template, or else of the request, as a String, Integer, Long, Double, Boolean or
     * JsonNode. A path like {@code proxy.noProxy[0]} looks into its value. It is a Failure if it is missing or no such.
     */
    public <T> T variable(String path, Class<T> type) {
      JsonNode node = lookUp(path);
      if (node.isMissingNode()) {
        throw new Failure("variable \"" + path + "\" is not set");
      }
      T value = Values.ofJson(node, type);
      if (value == null) {
        throw new Failure("variable \"" + path + "\" is not " + Values.name(type));
      }
      return value;
    }

    /** Returns a variable of the type of the default, which it is if it is not set. */
    @SuppressWarnings("unchecked") // the class of a T
    public <T> T variable(String path, T defaultValue) {
      return lookUp(path).isMissingNode() ? defaultValue : variable(path, (Class<T>) defaultValue.getClass());
    }

    private JsonNode lookUp(String path) {
      JsonNode node = null;
      for (String segment : path.split("\\.", -1)) {
        Matcher step = STEP.matcher(segment);
        if (!step.matches()) {
          throw new IllegalArgumentException(path + " is not like name.member[0]");
        }
        node = node == null ? value(step.group(1)) : node.path(step.group(1));
        node = step.group(2) == null ? node : node.path(Integer.parseInt(step.group(2)));
      }
      return node;
    }

    /** Returns a variable. The builtin one has the members of both, as Cluster API's inline patches see it. */
    private JsonNode value(String name) {
      JsonNode own = find(item.getVariablesList(), name);
      if (!own.isMissingNode() && !name.equals("builtin")) {
        return own;
      }
      return merge(find(request.getVariablesList(), name), own);
    }
  }

  private static JsonNode find(List<Variable> variables, String name) {
    return variables.stream()
        .filter(variable -> variable.getName().equals(name))
        .findFirst()
        .map(variable -> decode(name, variable.getValue().getRaw()))
        .orElse(MissingNode.getInstance());
  }

  private static JsonNode decode(String name, ByteString raw) {
    return Json.read("variables[" + name + "].value", raw);
  }

  private static JsonNode merge(JsonNode shared, JsonNode own) {
    if (shared instanceof ObjectNode into && own.isObject()) {
      own.properties().forEach(m -> into.set(m.getKey(), merge(into.path(m.getKey()), m.getValue())));
      return into;
    }
    return own.isMissingNode() ? shared : own;
  }
}
