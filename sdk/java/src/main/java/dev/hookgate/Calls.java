// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import io.grpc.Context;
import io.grpc.ForwardingServerCallListener.SimpleForwardingServerCallListener;
import io.grpc.HandlerRegistry;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerMethodDefinition;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.protobuf.ProtoFileDescriptorSupplier;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.io.InputStream;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;

/** The services of the hooks that have handlers, made from their descriptors. */
final class Calls {
  /** The metadata in which a gateway sends the id of a call. */
  private static final Metadata.Key<String> CALL_ID =
      Metadata.Key.of("hookgate-call-id", Metadata.ASCII_STRING_MARSHALLER);

  private final Extension extension;
  private final Semaphore inFlight;

  Calls(Extension extension, int concurrency) {
    this.extension = extension;
    this.inFlight = new Semaphore(concurrency);
  }

  List<ServerServiceDefinition> services() {
    Map<ServiceDescriptor, Map<MethodDescriptor, Message>> hooks = new LinkedHashMap<>();
    for (Extension.Registration r : extension.registrations()) {
      hooks.computeIfAbsent(r.hook().getService(), s -> new LinkedHashMap<>()).put(r.hook(), r.request());
    }
    return hooks.entrySet().stream().map(entry -> service(entry.getKey(), entry.getValue())).toList();
  }

  private ServerServiceDefinition service(ServiceDescriptor service, Map<MethodDescriptor, Message> hooks) {
    FileDescriptor file = service.getFile();
    var descriptor = io.grpc.ServiceDescriptor.newBuilder(service.getFullName())
        .setSchemaDescriptor((ProtoFileDescriptorSupplier) () -> file);
    Map<io.grpc.MethodDescriptor<Message, Message>, MethodDescriptor> methods = new LinkedHashMap<>();
    hooks.forEach((hook, request) -> {
      var method = io.grpc.MethodDescriptor.<Message, Message>newBuilder()
          .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
          .setFullMethodName(
              io.grpc.MethodDescriptor.generateFullMethodName(service.getFullName(), hook.getName()))
          .setRequestMarshaller(ProtoUtils.marshaller(request))
          .setResponseMarshaller(ProtoUtils.marshaller(DynamicMessage.getDefaultInstance(hook.getOutputType())))
          .build();
      descriptor.addMethod(method);
      methods.put(method, hook);
    });
    var definition = ServerServiceDefinition.builder(descriptor.build());
    methods.forEach((method, hook) -> definition.addMethod(method, handler(hook)));
    return definition.build();
  }

  /** Takes a call if not too many are in flight. */
  private ServerCallHandler<Message, Message> handler(MethodDescriptor hook) {
    return (call, headers) -> {
      if (!inFlight.tryAcquire()) {
        Status status = Status.RESOURCE_EXHAUSTED.withDescription("too many calls are in flight; try again later");
        return refuse(call, headers, hook.getName(), Level.INFO, "Overloaded", status);
      }
      var released = new AtomicBoolean();
      Runnable release = () -> {
        if (released.compareAndSet(false, true)) {
          inFlight.release();
        }
      };
      ServerCallHandler<Message, Message> unary =
          ServerCalls.asyncUnaryCall((request, observer) -> answer(hook, request, observer, headers));
      return new SimpleForwardingServerCallListener<>(unary.startCall(call, headers)) {
        @Override
        public void onComplete() {
          release.run();
          super.onComplete();
        }

        @Override
        public void onCancel() {
          release.run();
          super.onCancel();
        }
      };
    };
  }

  private static String idOf(Metadata headers) {
    return headers.containsKey(CALL_ID) ? headers.get(CALL_ID) : "";
  }

  /** Ends a call before its request is read, and logs it. */
  private static <Q, R> ServerCall.Listener<Q> refuse(
      ServerCall<Q, R> call, Metadata headers, String hook, Level level, String kind, Status status) {
    new Log.Call(hook, "", idOf(headers)).ended(level, kind, status);
    call.close(status, new Metadata());
    return new ServerCall.Listener<>() {};
  }

  /** Refuses hooks that the extension does not have. Clients also try services of gRPC's own that are not served. */
  static HandlerRegistry unknown() {
    return new HandlerRegistry() {
      @Override
      public ServerMethodDefinition<?, ?> lookupMethod(String path, String authority) {
        if (path.startsWith("grpc.")) {
          return null;
        }
        String name = path.substring(path.lastIndexOf('/') + 1);
        String hook = name.substring(0, Math.min(name.length(), 100));
        // A gateway calls the discoveries of all groups.
        Level level = path.endsWith(".DiscoveryService/" + name) ? Level.FINE : Level.INFO;
        Status status = Status.UNIMPLEMENTED.withDescription("the extension has no handler of " + hook);
        var method = io.grpc.MethodDescriptor.<InputStream, InputStream>newBuilder()
            .setType(io.grpc.MethodDescriptor.MethodType.UNARY)
            .setFullMethodName(path)
            .setRequestMarshaller(Bytes.MARSHALLER)
            .setResponseMarshaller(Bytes.MARSHALLER)
            .build();
        return ServerMethodDefinition.create(
            method, (call, headers) -> refuse(call, headers, hook, level, "UnknownHook", status));
      }
    };
  }

  /** Messages that are not read. */
  private static final class Bytes implements io.grpc.MethodDescriptor.Marshaller<InputStream> {
    private static final Bytes MARSHALLER = new Bytes();

    @Override
    public InputStream stream(InputStream value) {
      return value;
    }

    @Override
    public InputStream parse(InputStream stream) {
      return stream;
    }
  }

  private void answer(
      MethodDescriptor hook, Message request, StreamObserver<Message> observer, Metadata headers) {
    ((ServerCallStreamObserver<Message>) observer).setOnCancelHandler(() -> {}); // an answer then goes nowhere
    try (Traces.Entered trace = Traces.enter(headers)) {
      Message response = extension.answer(hook, request, idOf(headers));
      if (!Context.current().isCancelled()) { // else gRPC has answered
        observer.onNext(response);
        observer.onCompleted();
      }
    } catch (StatusException e) {
      observer.onError(e);
    }
  }
}
