// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate.example;

import static java.nio.file.LinkOption.NOFOLLOW_LINKS;

import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.util.TransmitStatusRuntimeExceptionInterceptor;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.concurrent.TimeUnit;

/** A Runtime Extension over gRPC. This class is the server; Hooks implements the hooks. */
public final class Main {
  /** Cluster API's limit. gRPC's is 4 MiB, which the templates of one cluster can exceed. */
  static final int MESSAGE_LIMIT = 20 << 20;

  public static void main(String[] args) throws IOException, InterruptedException {
    String address = args.length > 0 ? args[0] : "127.0.0.1:9090";
    Server server =
        listenOn(address)
            .maxInboundMessageSize(MESSAGE_LIMIT) // answers have none
            .intercept(TransmitStatusRuntimeExceptionInterceptor.instance()) // a handler may throw a Status
            .addService(new HealthStatusManager().getHealthService())
            .addService(new Hooks.Discovery())
            .addService(new Hooks.Lifecycle())
            .addService(new Hooks.Topology())
            .addService(new Hooks.InPlaceUpdate())
            .build()
            .start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> finish(server)));
    System.out.println("listening on " + address);
    server.awaitTermination();
  }

  private static NettyServerBuilder listenOn(String address) throws IOException {
    if (!address.startsWith("unix://")) {
      URI uri = URI.create("//" + address);
      return NettyServerBuilder.forAddress(new InetSocketAddress(uri.getHost(), uri.getPort()));
    }
    Path path = Path.of(address.substring("unix://".length()));
    if (Files.exists(path, NOFOLLOW_LINKS)
        && Files.readAttributes(path, BasicFileAttributes.class, NOFOLLOW_LINKS).isOther()) {
      Files.delete(path); // a server that was killed leaves its socket
    }
    EventLoopGroup group =
        new MultiThreadIoEventLoopGroup(new DefaultThreadFactory("grpc", true), NioIoHandler.newFactory());
    return NettyServerBuilder.forAddress(UnixDomainSocketAddress.of(path))
        .withChildOption(ChannelOption.SO_KEEPALIVE, null) // gRPC sets it, and a Unix socket has none
        .channelType(NioServerDomainSocketChannel.class)
        .bossEventLoopGroup(group)
        .workerEventLoopGroup(group);
  }

  /** Finishes the calls in flight, then exits with 0: Java itself exits with 143 on SIGTERM. */
  private static void finish(Server server) {
    server.shutdown();
    try {
      if (!server.awaitTermination(30, TimeUnit.SECONDS)) {
        Runtime.getRuntime().halt(1);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(0);
  }
}
