// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate.example;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.protobuf.ByteString;
import dev.hookgate.hooks.v1alpha1.*;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The hooks that the example implements. Any other method of its services answers UNIMPLEMENTED. */
final class Hooks {
  /** The one annotation that lets an upgrade to another minor version go on. */
  private static final String APPROVED_MINOR = "example.hookgate.dev/approved-minor";

  /** The variable that the patch is made from. */
  private static final String IMAGE_REPOSITORY = "imageRepository";

  /** Raises Jackson's default limit of 20,000,000 characters in a string. */
  private static final ObjectMapper MAPPER =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Main.MESSAGE_LIMIT).build())
                  .build())
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .build();

  static final class Discovery extends DiscoveryServiceGrpc.DiscoveryServiceImplBase {
    @Override
    public void discovery(DiscoveryRequest request, StreamObserver<DiscoveryResponse> observer) {
      answer(observer, DiscoveryResponse.newBuilder()
          .setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS)
          .addHandlers(handler("approve-upgrade", "BeforeClusterUpgrade"))
          .addHandlers(handler("image-repository", "GeneratePatches"))
          .addHandlers(handler("image-repository-variables", "DiscoverVariables"))
          .addHandlers(handler("patch-in-place", "CanUpdateMachine"))
          .build());
    }

    private static ExtensionHandler handler(String name, String hook) {
      return ExtensionHandler.newBuilder()
          .setName(name)
          .setRequestHook(GroupVersionHook.newBuilder()
              .setApiVersion("hooks.runtime.cluster.x-k8s.io/v1alpha1")
              .setHook(hook))
          .setTimeoutSeconds(10)
          .setFailurePolicy(FailurePolicy.FAILURE_POLICY_FAIL)
          .setClusterApiVersion("v1beta2") // of the objects that are read here: the gateway converts others
          .build();
    }
  }

  static final class Lifecycle extends LifecycleHooksServiceGrpc.LifecycleHooksServiceImplBase {
    /** Blocks an upgrade to another minor version until it is approved. */
    @Override
    public void beforeClusterUpgrade(
        BeforeClusterUpgradeRequest request, StreamObserver<BeforeClusterUpgradeResponse> observer) {
      JsonNode cluster = decode("cluster", request.getCluster().getRaw());
      Optional<String> from = minor(request.getFromKubernetesVersion());
      Optional<String> to = minor(request.getToKubernetesVersion());
      if (from.isEmpty()) {
        answer(observer, notAVersion("fromKubernetesVersion", request.getFromKubernetesVersion()));
        return;
      }
      if (to.isEmpty()) {
        answer(observer, notAVersion("toKubernetesVersion", request.getToKubernetesVersion()));
        return;
      }
      var response = BeforeClusterUpgradeResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS);
      String approved = cluster.path("metadata").path("annotations").path(APPROVED_MINOR).asText();
      if (!from.equals(to) && !approved.equals(to.get())) {
        // Blocking is not a failure: the caller asks again after this many seconds.
        response.setRetryAfterSeconds(30)
            .setMessage("upgrade to %1$s waits for the annotation %2$s: %1$s".formatted(to.get(), APPROVED_MINOR));
      }
      answer(observer, response.build());
    }
  }

  static final class Topology extends TopologyMutationHooksServiceGrpc.TopologyMutationHooksServiceImplBase {
    private static final List<String> PATH =
        List.of("spec", "template", "spec", "kubeadmConfigSpec", "clusterConfiguration", "imageRepository");

    /** Sets the image repository of every KubeadmControlPlaneTemplate from the variable. */
    @Override
    public void generatePatches(GeneratePatchesRequest request, StreamObserver<GeneratePatchesResponse> observer) {
      var response = GeneratePatchesResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS);
      for (int i = 0; i < request.getItemsCount(); i++) {
        GeneratePatchesRequestItem item = request.getItems(i);
        JsonNode template = decode("items[" + i + "].object", item.getObject().getRaw());
        if (!template.path("kind").asText().equals("KubeadmControlPlaneTemplate")) {
          continue;
        }
        Optional<Variable> variable =
            Stream.concat(item.getVariablesList().stream(), request.getVariablesList().stream()) // the item's own win
                .filter(v -> v.getName().equals(IMAGE_REPOSITORY))
                .findFirst();
        if (variable.isEmpty()) {
          continue;
        }
        JsonNode value = decode("variables[" + IMAGE_REPOSITORY + "].value", variable.get().getValue().getRaw());
        if (!value.isTextual()) {
          answer(observer, GeneratePatchesResponse.newBuilder()
              .setStatus(ResponseStatus.RESPONSE_STATUS_FAILURE)
              .setMessage("variable \"" + IMAGE_REPOSITORY + "\" is not a string")
              .build());
          return;
        }
        if (!value.asText().isEmpty()) {
          response.addItems(GeneratePatchesResponseItem.newBuilder()
              .setUid(item.getUid())
              .setPatchType(PatchType.PATCH_TYPE_JSON_PATCH)
              .setPatch(encode(setImageRepository(template, value))));
        }
      }
      answer(observer, response.build());
    }

    /**
     * Returns the patch that sets the image repository of a template. A patch cannot add below what is not there, so it
     * adds the first parent that is missing, with all that is below it.
     */
    private static JsonNode setImageRepository(JsonNode template, JsonNode repository) {
      int depth = 0;
      JsonNode parent = template;
      while (depth < PATH.size() - 1 && parent.path(PATH.get(depth)).isObject()) {
        parent = parent.get(PATH.get(depth++));
      }
      JsonNode value = repository;
      for (int i = PATH.size() - 1; i > depth; i--) {
        value = MAPPER.createObjectNode().set(PATH.get(i), value);
      }
      JsonNode operation = MAPPER.createObjectNode()
          .put("op", "add")
          .put("path", "/" + String.join("/", PATH.subList(0, depth + 1)))
          .set("value", value);
      return MAPPER.createArrayNode().add(operation);
    }

    @Override
    public void discoverVariables(
        DiscoverVariablesRequest request, StreamObserver<DiscoverVariablesResponse> observer) {
      JsonNode schema = MAPPER.createObjectNode()
          .put("type", "string")
          .put("description", "Registry and path that the images of Kubernetes are pulled from.")
          .put("minLength", 1)
          .put("example", "registry.example.com/kubernetes");
      answer(observer, DiscoverVariablesResponse.newBuilder()
          .setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS)
          .addVariables(ClusterClassVariable.newBuilder()
              .setName(IMAGE_REPOSITORY)
              .setRequired(false)
              .setSchema(VariableSchema.newBuilder().setOpenApiV3Schema(JSON.newBuilder().setRaw(encode(schema)))))
          .build());
    }
  }

  static final class InPlaceUpdate extends InPlaceUpdateHooksServiceGrpc.InPlaceUpdateHooksServiceImplBase {
    /** Offers to change a Machine from one patch version to another in place. */
    @Override
    public void canUpdateMachine(CanUpdateMachineRequest request, StreamObserver<CanUpdateMachineResponse> observer) {
      JsonNode current = decode("current.machine", request.getCurrent().getMachine().getRaw());
      JsonNode desired = decode("desired.machine", request.getDesired().getMachine().getRaw());
      var response = CanUpdateMachineResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS);
      String from = current.path("spec").path("version").asText();
      String to = desired.path("spec").path("version").asText();
      if (minor(from).isPresent() && minor(from).equals(minor(to)) && !from.equals(to)) {
        JsonNode spec = MAPPER.createObjectNode().put("version", to);
        response.setMachinePatch(Patch.newBuilder()
            .setPatchType(PatchType.PATCH_TYPE_JSON_MERGE_PATCH)
            .setPatch(encode(MAPPER.createObjectNode().set("spec", spec))));
      }
      answer(observer, response.build());
    }
  }

  private static final Pattern VERSION = Pattern.compile("(v[0-9]+\\.[0-9]+)\\.[0-9]+([-+][0-9A-Za-z.+-]+)?");

  /** Returns the minor version, v1.36 of v1.36.1. */
  private static Optional<String> minor(String version) {
    Matcher m = VERSION.matcher(version);
    return m.matches() ? Optional.of(m.group(1)) : Optional.empty();
  }

  private static BeforeClusterUpgradeResponse notAVersion(String member, String value) {
    return BeforeClusterUpgradeResponse.newBuilder()
        .setStatus(ResponseStatus.RESPONSE_STATUS_FAILURE)
        .setMessage(member + " \"" + value + "\" is not a version like v1.36.1")
        .build();
  }

  private static <T> void answer(StreamObserver<T> observer, T response) {
    observer.onNext(response);
    observer.onCompleted();
  }

  /** Decodes a Kubernetes object, or another value. The extension does not validate its schema. */
  private static JsonNode decode(String member, ByteString raw) {
    try {
      JsonNode node = MAPPER.readTree(raw.newInput());
      if (!node.isMissingNode()) {
        return node;
      }
      throw Status.INVALID_ARGUMENT.withDescription(member + ": there is none").asRuntimeException();
    } catch (IOException e) {
      throw Status.INVALID_ARGUMENT.withDescription(member + ": " + e.getMessage()).asRuntimeException();
    }
  }

  private static ByteString encode(JsonNode node) {
    return ByteString.copyFromUtf8(node.toString());
  }

  private Hooks() {}
}
