// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import dev.hookgate.hooks.v1alpha1.DiscoveryRequest;
import dev.hookgate.hooks.v1alpha1.DiscoveryResponse;
import dev.hookgate.hooks.v1alpha1.DiscoveryServiceGrpc;
import io.grpc.BindableService;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Serves an extension over gRPC, with health and reflection. Its options are set by one thread, and then it is started
 * once.
 */
public final class Server {
  /** Cluster API's limit. gRPC's is 4 MiB, which the templates of one cluster can exceed. */
  static final int MESSAGE_LIMIT = 20 << 20;

  private static final String UNIX = "unix://";

  private final Extension extension;
  private String address;
  private boolean insecure;
  private int concurrency = 100;
  private Tls tls;
  private HealthStatusManager health;
  private io.grpc.Server server;
  private UnixSocket socket;

  /** Makes a server at the environment's EXTENSION_ADDRESS, or else at 127.0.0.1:9090. */
  public Server(Extension extension) {
    this.extension = extension;
    String environment = System.getenv("EXTENSION_ADDRESS");
    this.address = environment == null ? "127.0.0.1:9090" : environment;
  }

  /** Sets where to listen: HOST:PORT, or unix:///PATH. */
  public Server address(String address) {
    this.address = address;
    return this;
  }

  /** Permits an address that is not on loopback without TLS. */
  public Server insecure() {
    insecure = true;
    return this;
  }

  /** Sets how many calls may be in flight, 100 by default. One more is answered RESOURCE_EXHAUSTED. */
  public Server concurrency(int calls) {
    concurrency = calls;
    return this;
  }

  /**
   * Sets the certificate chain and its key, PEM files that are read again when they change.
   *
   * @param clientCa a PEM file of the CAs of callers, who must then show a certificate; null if they need none
   */
  public Server tls(Path certificate, Path key, Path clientCa) {
    tls = new Tls(certificate.toFile(), key.toFile(), clientCa == null ? null : clientCa.toFile());
    return this;
  }

  /**
   * Serves until SIGTERM or SIGINT, and then finishes the calls in flight.
   *
   * @throws IOException if it cannot listen there, or without TLS should not
   */
  public void serve() throws IOException, InterruptedException {
    var stop = new CountDownLatch(1);
    for (String name : new String[] {"TERM", "INT"}) {
      sun.misc.Signal.handle(new sun.misc.Signal(name), signal -> stop.countDown());
    }
    start();
    stop.await();
    stop();
  }

  /** Starts to serve, in threads of its own. */
  public void start() throws IOException {
    if (extension.registrations().isEmpty()) {
      throw new IOException("the extension has no handlers: add one with Extension.handle");
    }
    Log.configure();
    health = new HealthStatusManager();
    var calls = new Calls(extension, concurrency);
    NettyServerBuilder builder = listen()
        .maxInboundMessageSize(MESSAGE_LIMIT)
        .addService(health.getHealthService())
        .addService(ProtoReflectionServiceV1.newInstance())
        .addService(discovery())
        .fallbackHandlerRegistry(Calls.unknown());
    calls.services().forEach(builder::addService);
    try {
      server = builder.build().start();
      if (socket != null) {
        socket.publish();
      }
    } catch (IOException e) {
      if (server != null) {
        server.shutdownNow();
      }
      if (socket != null) {
        socket.close();
      }
      Throwable cause = e.getCause() == null ? e : e.getCause();
      throw new IOException("listen on " + address + ": " + cause.getMessage(), e);
    }
    Log.listening(address.endsWith(":0") ? address.substring(0, address.length() - 1) + server.getPort() : address);
  }

  /** Finishes the calls in flight, for 30 seconds at most. */
  public void stop() throws InterruptedException {
    health.enterTerminalState(); // NOT_SERVING
    if (socket != null) {
      socket.close(); // before another server takes its path
    }
    server.shutdown();
    if (!server.awaitTermination(30, TimeUnit.SECONDS)) {
      Log.LOGGER.warning("calls were still in flight after 30 s");
      server.shutdownNow();
    }
    if (tls != null) {
      tls.close();
    }
  }

  private BindableService discovery() {
    return new DiscoveryServiceGrpc.DiscoveryServiceImplBase() {
      @Override
      public void discovery(DiscoveryRequest request, StreamObserver<DiscoveryResponse> observer) {
        observer.onNext(extension.discovery());
        observer.onCompleted();
      }
    };
  }

  private NettyServerBuilder listen() throws IOException {
    if (!address.startsWith(UNIX)) {
      URI uri = URI.create("//" + address);
      if (uri.getHost() == null || uri.getPort() < 0) {
        throw new IOException("listen on " + address + ": it is neither HOST:PORT nor unix:///PATH");
      }
      var socketAddress = new InetSocketAddress(uri.getHost(), uri.getPort());
      if (tls != null) {
        return NettyServerBuilder.forAddress(socketAddress, tls.credentials());
      }
      if (!insecure && (socketAddress.isUnresolved() || !socketAddress.getAddress().isLoopbackAddress())) {
        throw new IOException("listen on " + address + ": it is not on loopback, where everyone could call without TLS:"
            + " give Server.tls a certificate, or permit it with Server.insecure");
      }
      return NettyServerBuilder.forAddress(socketAddress);
    }
    try {
      socket = new UnixSocket(Path.of(address.substring(UNIX.length())));
    } catch (IOException e) {
      throw new IOException("listen on " + address + ": " + e.getMessage(), e);
    }
    EventLoopGroup group =
        new MultiThreadIoEventLoopGroup(new DefaultThreadFactory("grpc", true), NioIoHandler.newFactory());
    return NettyServerBuilder.forAddress((SocketAddress) UnixDomainSocketAddress.of(socket.place()))
        .withChildOption(ChannelOption.SO_KEEPALIVE, null) // gRPC sets it, and a Unix socket has none
        .channelType(NioServerDomainSocketChannel.class)
        .bossEventLoopGroup(group)
        .workerEventLoopGroup(group);
  }
}
