// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.MethodDescriptor;
import com.google.protobuf.Descriptors.ServiceDescriptor;
import com.google.protobuf.Message;
import dev.hookgate.hooks.v1alpha1.DiscoveryResponse;
import dev.hookgate.hooks.v1alpha1.ExtensionHandler;
import dev.hookgate.hooks.v1alpha1.GroupVersionHook;
import dev.hookgate.hooks.v1alpha1.ResponseStatus;
import io.grpc.Context;
import io.grpc.Deadline;
import io.grpc.Status;
import io.grpc.StatusException;
import io.grpc.StatusRuntimeException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * A Runtime Extension: handlers, whose hooks are the types of their requests, and the discovery that lists them.
 *
 * <p>Handlers are added by one thread. {@link #call} is safe for concurrent use afterwards.
 */
public final class Extension {
  private static final Pattern LABEL = Pattern.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?");
  private static final String HOOKS = "hookgate.hooks.";
  private static final String INFRASTRUCTURE = "hookgate.infrastructure.";
  private static final String MACHINES = "hookgate.machines.";

  /** A handler of one hook. */
  record Registration(MethodDescriptor hook, String apiVersion, Options options, Message request, Handler<?> handler) {
    String name() {
      return options.name();
    }
  }

  private final List<Registration> registrations = new ArrayList<>();
  private final Map<String, String> apiVersions = new HashMap<>();
  private String clusterApiVersion = "v1beta2";

  /** Makes an extension without handlers, whose objects have the version v1beta2. */
  public Extension() {}

  /**
   * Sets the version of Cluster API's objects that handlers read, to which the gateway converts others. If it is empty,
   * objects arrive as they were sent.
   */
  public Extension clusterApiVersion(String version) {
    clusterApiVersion = version;
    return this;
  }

  /** Sets the apiVersion of the hooks in a package of one's own: {@code acme.dns.v1}, {@code dns.acme.example/v1}. */
  public Extension apiVersion(String protoPackage, String apiVersion) {
    apiVersions.put(protoPackage, apiVersion);
    return this;
  }

  /** Adds a handler with the default options. */
  public <Q extends Message> Extension handle(Class<Q> request, String name, Handler<Q> handler) {
    return handle(request, Options.named(name), handler);
  }

  /**
   * Adds a handler of the hook whose request is this class.
   *
   * @throws IllegalArgumentException if the name, the timeout or the class cannot be that of a handler
   */
  public <Q extends Message> Extension handle(Class<Q> request, Options options, Handler<Q> handler) {
    String where = "handler \"" + options.name() + "\": ";
    if (!LABEL.matcher(options.name()).matches()) {
      throw new IllegalArgumentException(
          where + "the name is not a DNS-1123 label: use at most 63 of a-z, 0-9 and, inside, -");
    }
    if (registrations.stream().anyMatch(r -> r.name().equals(options.name()))) {
      throw new IllegalArgumentException(where + "there is a handler of this name already");
    }
    if (options.timeoutSeconds() < 0 || options.timeoutSeconds() > 30) {
      throw new IllegalArgumentException(
          where + "a timeout of " + options.timeoutSeconds() + " seconds is not from 0 to 30");
    }
    Message instance = com.google.protobuf.Internal.getDefaultInstance(request);
    MethodDescriptor hook = hookOf(instance.getDescriptorForType());
    if (hook == null) {
      throw new IllegalArgumentException(where + "no rpc of its file takes a " + request.getSimpleName());
    }
    String apiVersion = apiVersionOf(hook.getFile().getPackage());
    if (apiVersion == null) {
      throw new IllegalArgumentException(where + "the group of the package " + hook.getFile().getPackage()
          + " is not known: give it to Extension.apiVersion first");
    }
    registrations.add(new Registration(hook, apiVersion, options, instance, handler));
    return this;
  }

  private static MethodDescriptor hookOf(Descriptor request) {
    for (ServiceDescriptor service : request.getFile().getServices()) {
      for (MethodDescriptor method : service.getMethods()) {
        if (method.getInputType().equals(request)) {
          return method;
        }
      }
    }
    return null;
  }

  private String apiVersionOf(String protoPackage) {
    if (apiVersions.containsKey(protoPackage)) {
      return apiVersions.get(protoPackage);
    }
    if (protoPackage.startsWith(HOOKS)) {
      return "hooks.runtime.cluster.x-k8s.io/" + protoPackage.substring(HOOKS.length());
    }
    if (protoPackage.startsWith(INFRASTRUCTURE)) {
      return "infrastructure.hookgate.dev/" + protoPackage.substring(INFRASTRUCTURE.length());
    }
    if (protoPackage.startsWith(MACHINES)) {
      return "hooks.machines.hookgate.dev/" + protoPackage.substring(MACHINES.length());
    }
    return null;
  }

  /**
   * Calls a handler in this process, as a server would.
   *
   * @param handler its name, or an empty string for the only handler of the hook
   * @throws StatusException with the status that a caller would receive
   */
  public Message call(String handler, Message request) throws StatusException {
    var field = request.getDescriptorForType().findFieldByName("handler");
    return answer(hookOf(request.getDescriptorForType()), request.toBuilder().setField(field, handler).build(), "");
  }

  /** Returns the handlers in the order in which they were added. */
  List<Registration> registrations() {
    return registrations;
  }

  DiscoveryResponse discovery() {
    var response = DiscoveryResponse.newBuilder().setStatus(ResponseStatus.RESPONSE_STATUS_SUCCESS);
    for (Registration r : registrations) {
      String version = r.options().clusterApiVersion();
      response.addHandlers(ExtensionHandler.newBuilder()
          .setName(r.name())
          .setRequestHook(GroupVersionHook.newBuilder().setApiVersion(r.apiVersion()).setHook(r.hook().getName()))
          .setTimeoutSeconds(r.options().timeoutSeconds())
          .setFailurePolicy(r.options().failurePolicy())
          .setClusterApiVersion(version == null ? clusterApiVersion : version));
    }
    return response.build();
  }

  /** Answers a call of a hook. */
  Message answer(MethodDescriptor hook, Message request, String callId) throws StatusException {
    Registration registration = select(hook, request, callId);
    String name = registration.name();
    var call = new Log.Call(hook.getName(), name, callId);
    try {
      @SuppressWarnings("unchecked") // both are of one registration
      Answer answer = ((Handler<Message>) registration.handler()).handle(request);
      if (answer == null) {
        throw new Failure("handler \"" + name + "\" returned null: return Answer.done(), wait(), fail() or of()");
      }
      Message response = answer.response(hook.getName(), hook.getOutputType());
      String problem = Answer.problem(response);
      if (problem == null) {
        call.answered();
      } else {
        call.refused(problem);
      }
      return response;
    } catch (Failure e) {
      call.refused(e.getMessage() == null ? "" : e.getMessage());
      return failure(hook, e.getMessage());
    } catch (StatusException e) {
      call.ended(Log.kindOf(e.getStatus()), e.getStatus());
      throw e;
    } catch (StatusRuntimeException e) {
      call.ended(Log.kindOf(e.getStatus()), e.getStatus());
      throw e.getStatus().asException();
    } catch (Throwable e) {
      if (Context.current().isCancelled()) { // nobody waits for an answer
        Deadline deadline = Context.current().getDeadline();
        boolean late = deadline != null && deadline.isExpired();
        Status status = (late ? Status.DEADLINE_EXCEEDED : Status.CANCELLED)
            .withDescription("the call has ended before its handler");
        call.ended(late ? "Timeout" : "Canceled", status);
        throw status.asException();
      }
      call.broke(e);
      return failure(hook, "handler \"%s\": internal error (%s); search the log of the extension for the call's id"
          .formatted(name, e.getClass().getSimpleName()));
    }
  }

  private Registration select(MethodDescriptor hook, Message request, String callId) throws StatusException {
    List<Registration> handlers = registrations.stream().filter(r -> r.hook().equals(hook)).toList();
    if (handlers.isEmpty()) {
      throw refused(hook, callId, "UnknownHook",
          Status.UNIMPLEMENTED.withDescription("the extension has no handler of " + hook.getName()));
    }
    var field = request.getDescriptorForType().findFieldByName("handler");
    String name = field == null ? "" : (String) request.getField(field);
    String known = handlers.stream().map(Registration::name).collect(Collectors.joining(", "));
    if (!name.isEmpty()) {
      return handlers.stream().filter(r -> r.name().equals(name)).findFirst()
          .orElseThrow(() -> refused(hook, callId, "UnknownHandler", Status.NOT_FOUND.withDescription(
              "%s has no handler \"%s\", but %s".formatted(hook.getName(), name, known))));
    }
    if (handlers.size() > 1) {
      throw refused(hook, callId, "Ambiguous", Status.INVALID_ARGUMENT.withDescription(
          hook.getName() + " has several handlers: name one of " + known));
    }
    return handlers.get(0);
  }

  private static StatusException refused(MethodDescriptor hook, String callId, String kind, Status status) {
    new Log.Call(hook.getName(), "", callId).ended(kind, status);
    return status.asException();
  }

  private static Message failure(MethodDescriptor hook, String message) throws StatusException {
    if (hook.getOutputType().findFieldByName("status") == null) {
      throw Status.INTERNAL.withDescription(message).asException();
    }
    return Answer.fail(message).response(hook.getName(), hook.getOutputType());
  }
}
