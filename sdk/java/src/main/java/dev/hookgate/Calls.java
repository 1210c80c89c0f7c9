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
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.protobuf.ProtoFileDescriptorSupplier;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;

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
        call.close(
            Status.RESOURCE_EXHAUSTED.withDescription("too many calls are in flight; try again later"),
            new Metadata());
        return new ServerCall.Listener<>() {};
      }
      var released = new AtomicBoolean();
      Runnable release = () -> {
        if (released.compareAndSet(false, true)) {
          inFlight.release();
        }
      };
      String id = headers.containsKey(CALL_ID) ? headers.get(CALL_ID) : "";
      ServerCallHandler<Message, Message> unary =
          ServerCalls.asyncUnaryCall((request, observer) -> answer(hook, request, observer, id));
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

  private void answer(MethodDescriptor hook, Message request, StreamObserver<Message> observer, String id) {
    ((ServerCallStreamObserver<Message>) observer).setOnCancelHandler(() -> {}); // an answer then goes nowhere
    try {
      Message response = extension.answer(hook, request, id);
      if (!Context.current().isCancelled()) { // else gRPC has answered
        observer.onNext(response);
        observer.onCompleted();
      }
    } catch (StatusException e) {
      observer.onError(e);
    }
  }
}
