// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

import dev.hookgate.hooks.v1alpha1.*;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;

/** An extension with one handler, on the stubs alone. */
public final class Main {
  static final class Discovery extends DiscoveryServiceGrpc.DiscoveryServiceImplBase {
    @Override
    public void discovery(DiscoveryRequest request, StreamObserver<DiscoveryResponse> answer) {
      var hook = GroupVersionHook.newBuilder().setApiVersion("hooks.runtime.cluster.x-k8s.io/v1alpha1").setHook("BeforeClusterUpgrade");
      answer.onNext(DiscoveryResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS)
          .addHandlers(ExtensionHandler.newBuilder().setName("hello").setRequestHook(hook)).build());
      answer.onCompleted();
    }
  }

  static final class Lifecycle extends LifecycleHooksServiceGrpc.LifecycleHooksServiceImplBase {
    @Override
    public void beforeClusterUpgrade(
        BeforeClusterUpgradeRequest request, StreamObserver<BeforeClusterUpgradeResponse> answer) {
      answer.onNext(BeforeClusterUpgradeResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS).build());
      answer.onCompleted();
    }
  }

  public static void main(String[] args) throws Exception {
    var at = args[0].split(":");
    NettyServerBuilder.forAddress(new InetSocketAddress(at[0], Integer.parseInt(at[1])))
        .addService(new Discovery()).addService(new Lifecycle()).addService(new HealthStatusManager().getHealthService()).addService(ProtoReflectionServiceV1.newInstance())
        .build().start().awaitTermination();
  }
}
