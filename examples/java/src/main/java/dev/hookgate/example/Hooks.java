// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate.example;

import static dev.hookgate.Requests.covers;
import static dev.hookgate.Requests.load;

import com.google.protobuf.ByteString;
import dev.hookgate.Answer;
import dev.hookgate.Extension;
import dev.hookgate.Failure;
import dev.hookgate.Patches;
import dev.hookgate.hooks.v1alpha1.*;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The handlers. */
final class Hooks {
  /** The one annotation that lets an upgrade to another minor version go on. */
  private static final String APPROVED_MINOR = "example.hookgate.dev/approved-minor";

  /** The variable that the patch is made from. */
  private static final String IMAGE_REPOSITORY = "imageRepository";

  static Extension extension() {
    return new Extension()
        .handle(BeforeClusterUpgradeRequest.class, "approve-upgrade", Hooks::approveUpgrade)
        .handle(GeneratePatchesRequest.class, "image-repository", Hooks::imageRepository)
        .handle(DiscoverVariablesRequest.class, "image-repository-variables", Hooks::imageRepositoryVariables)
        .handle(CanUpdateMachineRequest.class, "patch-in-place", Hooks::patchInPlace);
  }

  /** Blocks an upgrade to another minor version until it is approved. */
  private static Answer approveUpgrade(BeforeClusterUpgradeRequest request) {
    var annotations = load(request, "cluster").path("metadata").path("annotations");
    String from = known("fromKubernetesVersion", request.getFromKubernetesVersion());
    String to = known("toKubernetesVersion", request.getToKubernetesVersion());
    if (from.equals(to) || annotations.path(APPROVED_MINOR).asText().equals(to)) {
      return Answer.done();
    }
    return Answer.wait(30, "upgrade to %1$s waits for the annotation %2$s: %1$s".formatted(to, APPROVED_MINOR));
  }

  /** Sets the image repository of every KubeadmControlPlaneTemplate from the variable. */
  private static Answer imageRepository(GeneratePatchesRequest request) {
    var patches = new Patches(request);
    for (Patches.Item item : patches.items("KubeadmControlPlaneTemplate")) {
      String repository = item.variable(IMAGE_REPOSITORY, "");
      if (!repository.isEmpty()) {
        item.set("/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository", repository);
      }
    }
    return patches.answer();
  }

  private static Answer imageRepositoryVariables(DiscoverVariablesRequest request) {
    String schema = """
        {"type": "string", "description": "Registry and path that the images of Kubernetes are pulled from.",
         "minLength": 1, "example": "registry.example.com/kubernetes"}""";
    return Answer.of(DiscoverVariablesResponse.newBuilder().addVariables(ClusterClassVariable.newBuilder()
        .setName(IMAGE_REPOSITORY)
        .setRequired(false)
        .setSchema(VariableSchema.newBuilder()
            .setOpenApiV3Schema(JSON.newBuilder().setRaw(ByteString.copyFromUtf8(schema))))));
  }

  /** Offers to change a Machine from one patch version to another in place. */
  private static Answer patchInPlace(CanUpdateMachineRequest request) {
    Optional<String> from = minor(load(request, "current.machine").path("spec").path("version").asText());
    Optional<String> to = minor(load(request, "desired.machine").path("spec").path("version").asText());
    if (from.isEmpty() || !from.equals(to)) {
      return Answer.done();
    }
    return Answer.of(covers(request, Map.of("machine", List.of("/spec/version"))));
  }

  private static final Pattern VERSION = Pattern.compile("(v[0-9]+\\.[0-9]+)\\.[0-9]+([-+][0-9A-Za-z.+-]+)?");

  /** Returns the minor version, v1.36 of v1.36.1. */
  private static Optional<String> minor(String version) {
    Matcher m = VERSION.matcher(version);
    return m.matches() ? Optional.of(m.group(1)) : Optional.empty();
  }

  private static String known(String member, String version) {
    return minor(version).orElseThrow(
        () -> new Failure(member + " \"" + version + "\" is not a version like v1.36.1"));
  }

  private Hooks() {}
}
