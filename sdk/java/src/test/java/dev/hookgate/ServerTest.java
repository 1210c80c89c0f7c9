// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import dev.hookgate.hooks.v1alpha1.*;
import dev.hookgate.infrastructure.v1alpha1.DiscoverInfrastructureRequest;
import dev.hookgate.infrastructure.v1alpha1.DiscoveryServiceGrpc;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.nio.NioIoHandler;
import io.grpc.netty.shaded.io.netty.channel.socket.nio.NioDomainSocketChannel;
import io.grpc.reflection.v1.ServerReflectionGrpc;
import io.grpc.reflection.v1.ServerReflectionRequest;
import io.grpc.reflection.v1.ServerReflectionResponse;
import io.grpc.reflection.v1.ServiceResponse;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.TraceId;
import io.opentelemetry.api.trace.TracerProvider;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.propagation.ContextPropagators;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What callers see of a server. */
@Timeout(60)
class ServerTest {
  private static final BeforeClusterCreateRequest REQUEST = BeforeClusterCreateRequest.getDefaultInstance();

  @TempDir
  private Path folder;
  private Path socket;
  private Server server;
  private MultiThreadIoEventLoopGroup group;
  private ManagedChannel channel;
  private final LinkedBlockingQueue<JsonNode> lines = new LinkedBlockingQueue<>();
  private final Handler log = new Handler() {
    private final Log.Lines format = new Log.Lines();

    @Override
    public void publish(LogRecord record) {
      lines.add(Json.read("line", ByteString.copyFromUtf8(format.format(record))));
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
  };

  @BeforeEach
  void connect() {
    socket = folder.resolve("x.sock");
    group = new MultiThreadIoEventLoopGroup(1, NioIoHandler.newFactory());
    channel = NettyChannelBuilder.forAddress(UnixDomainSocketAddress.of(socket))
        .eventLoopGroup(group)
        .channelType(NioDomainSocketChannel.class, UnixDomainSocketAddress.class)
        .withOption(io.grpc.netty.shaded.io.netty.channel.ChannelOption.SO_KEEPALIVE, null)
        .usePlaintext()
        .build();
    Log.LOGGER.addHandler(log);
  }

  @AfterEach
  void close() throws Exception {
    Log.LOGGER.removeHandler(log);
    Log.LOGGER.setLevel(null);
    channel.shutdownNow();
    group.shutdownGracefully(0, 0, TimeUnit.SECONDS);
    if (server != null) {
      server.stop();
    }
  }

  private Server serverOf(dev.hookgate.Handler<BeforeClusterCreateRequest> handler) {
    var extension = new Extension().handle(BeforeClusterCreateRequest.class, "x", handler);
    return new Server(extension).address("unix://" + socket);
  }

  private void serve(Server made) throws IOException {
    made.start();
    server = made;
  }

  private LifecycleHooksServiceGrpc.LifecycleHooksServiceBlockingStub stub() {
    return LifecycleHooksServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the log line of a call. */
  private JsonNode line() throws InterruptedException {
    JsonNode line = lines.take();
    return line.has("hook") ? line : line();
  }

  @Test
  void exceptionsAreFailuresWhoseTextIsInTheLog() throws Exception {
    serve(serverOf(request -> {
      throw new IOException("secret");
    }));
    var headers = new Metadata();
    headers.put(Metadata.Key.of("hookgate-call-id", Metadata.ASCII_STRING_MARSHALLER), "c1");
    var response = stub().withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers))
        .beforeClusterCreate(REQUEST);
    assertEquals(ResponseStatus.RESPONSE_STATUS_FAILURE, response.getStatus());
    assertEquals("handler \"x\": internal error (IOException); search the log of the extension for the call's id",
        response.getMessage());
    JsonNode line = line();
    assertEquals("java.io.IOException: secret", line.get("error").asText());
    assertTrue(line.get("stack").asText().startsWith("java.io.IOException: secret\n\tat "), line.toString());
  }

  /** The packages of all languages write the same lines. */
  @Test
  void lines() throws Exception {
    Log.LOGGER.setLevel(Level.FINE);
    var extension = new Extension()
        .handle(BeforeClusterCreateRequest.class, "done", request -> Answer.done())
        .handle(BeforeClusterCreateRequest.class, "refusing", request -> Answer.fail("no quota"))
        .handle(BeforeClusterCreateRequest.class, "unreadable", request -> {
          throw Status.INVALID_ARGUMENT.withDescription("cluster: there is none").asException();
        })
        .handle(BeforeClusterCreateRequest.class, "unavailable", request -> {
          throw Status.UNAVAILABLE.withDescription("come back").asRuntimeException();
        })
        .handle(BeforeClusterCreateRequest.class, "broken", request -> {
          throw new IOException("secret");
        });
    serve(new Server(extension).address("unix://" + socket));
    var cases = Json.readObject("logs.json", ByteString.copyFrom(Files.readAllBytes(Path.of("../testdata/logs.json"))));
    for (var entry : cases.properties()) {
      String name = entry.getKey();
      if (!name.equals("listening")) {
        callQuietly(name);
      }
      var line = (ObjectNode) lines.take();
      var others = new ArrayList<>(List.of("time"));
      entry.getValue().get("others").forEach(other -> others.add(other.asText()));
      for (String other : others) {
        assertTrue(line.remove(other) != null, name + " has no " + other);
      }
      assertEquals(entry.getValue().get("line"), line, name);
    }
  }

  private void callQuietly(String name) {
    var headers = new Metadata();
    headers.put(Metadata.Key.of("hookgate-call-id", Metadata.ASCII_STRING_MARSHALLER), "c1");
    var stub = stub().withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers));
    try {
      if (name.equals("BeforeClusterDelete")) {
        stub.beforeClusterDelete(BeforeClusterDeleteRequest.getDefaultInstance());
      } else if (name.equals("DiscoverInfrastructure")) {
        DiscoveryServiceGrpc.newBlockingStub(stub.getChannel())
            .discoverInfrastructure(DiscoverInfrastructureRequest.getDefaultInstance());
      } else {
        stub.beforeClusterCreate(BeforeClusterCreateRequest.newBuilder().setHandler(name).build());
      }
    } catch (StatusRuntimeException e) {
      assertTrue(!name.equals("done"), e.toString());
    }
  }

  @Test
  void traceOfTheCallerGoesOn() throws Exception {
    GlobalOpenTelemetry.resetForTest();
    GlobalOpenTelemetry.set(new OpenTelemetry() {
      @Override
      public TracerProvider getTracerProvider() {
        return TracerProvider.noop();
      }

      @Override
      public ContextPropagators getPropagators() {
        return ContextPropagators.create(W3CTraceContextPropagator.getInstance());
      }
    });
    serve(serverOf(request -> Answer.fail(Span.current().getSpanContext().getTraceId())));
    var headers = new Metadata();
    String trace = "0123456789abcdef0123456789abcdef";
    String parent = "00-" + trace + "-0123456789abcdef-01";
    headers.put(Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER), parent);
    headers.put(Metadata.Key.of("binary-bin", Metadata.BINARY_BYTE_MARSHALLER), new byte[] {1});
    assertEquals(trace, stub().withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers))
        .beforeClusterCreate(REQUEST).getMessage());
    assertEquals(TraceId.getInvalid(), stub().beforeClusterCreate(REQUEST).getMessage());
  }

  @Test
  void responsesThatAreFailuresAreLogged() throws Exception {
    serve(serverOf(request -> Answer.of(
        BeforeClusterCreateResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_FAILURE))));
    stub().beforeClusterCreate(REQUEST);
    var line = line();
    assertEquals("Failure", line.get("kind").asText());
    assertNull(line.get("call_id"), "a call without an id");
  }

  @Test
  void oneCallMoreThanMayBeInFlightIsRefused() throws Exception {
    var entered = new CountDownLatch(1);
    var leave = new CountDownLatch(1);
    serve(serverOf(request -> {
      entered.countDown();
      leave.await();
      return Answer.done();
    }).concurrency(1));
    var first = LifecycleHooksServiceGrpc.newFutureStub(channel).beforeClusterCreate(REQUEST);
    entered.await();
    var refused = assertThrows(StatusRuntimeException.class, () -> stub().beforeClusterCreate(REQUEST));
    assertEquals("RESOURCE_EXHAUSTED: too many calls are in flight; try again later", refused.getMessage());
    leave.countDown();
    first.get();
    while (!succeeds()) { // the place is free a moment after its caller has the answer
      Thread.onSpinWait();
    }
  }

  private boolean succeeds() {
    try {
      stub().beforeClusterCreate(REQUEST);
      return true;
    } catch (StatusRuntimeException e) {
      assertEquals(Status.Code.RESOURCE_EXHAUSTED, e.getStatus().getCode());
      return false;
    }
  }

  @Test
  void healthAndReflection() throws Exception {
    serve(serverOf(request -> Answer.done()));
    assertEquals(ServingStatus.SERVING,
        HealthGrpc.newBlockingStub(channel).check(HealthCheckRequest.getDefaultInstance()).getStatus());

    var answer = new CompletableFuture<ServerReflectionResponse>();
    var requests = ServerReflectionGrpc.newStub(channel).serverReflectionInfo(new StreamObserver<>() {
      @Override
      public void onNext(ServerReflectionResponse response) {
        answer.complete(response);
      }

      @Override
      public void onError(Throwable thrown) {
        answer.completeExceptionally(thrown);
      }

      @Override
      public void onCompleted() {}
    });
    requests.onNext(ServerReflectionRequest.newBuilder().setListServices("").build());
    List<String> services = answer.get().getListServicesResponse().getServiceList().stream()
        .map(ServiceResponse::getName).sorted().toList();
    requests.onCompleted();
    assertEquals(List.of("grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection",
        "hookgate.hooks.v1alpha1.DiscoveryService", "hookgate.hooks.v1alpha1.LifecycleHooksService"), services);
  }

  @Test
  void staleSocketIsReplaced() throws Exception {
    try (var killed = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      killed.bind(UnixDomainSocketAddress.of(socket));
    }
    assertTrue(Files.exists(socket));
    serve(serverOf(request -> Answer.done()));
    stub().beforeClusterCreate(REQUEST);
    assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(socket)));
    assertEquals(List.of(socket), files());
    server.stop();
    assertEquals(List.of(), files());
  }

  @Test
  void liveSocketIsRefused() throws Exception {
    serve(serverOf(request -> Answer.done()));
    assertNotListening("another server listens there");
    stub().beforeClusterCreate(REQUEST);
    assertEquals(List.of(socket), files());
  }

  @Test
  void fileThatIsNoSocketIsRefused() throws Exception {
    Files.writeString(socket, "precious");
    assertNotListening("there is a file that is not a socket");
    assertEquals("precious", Files.readString(socket));
  }

  @Test
  void folderThatIsNotThereIsRefused() {
    socket = folder.resolve("missing/x.sock");
    assertNotListening("cannot write to " + folder.resolve("missing") + " (NoSuchFileException)");
  }

  private void assertNotListening(String want) {
    var second = serverOf(request -> Answer.done());
    assertEquals("listen on unix://" + socket + ": " + want,
        assertThrows(IOException.class, second::start).getMessage());
  }

  private List<Path> files() throws IOException {
    try (var files = Files.list(folder)) {
      return files.toList();
    }
  }
}
