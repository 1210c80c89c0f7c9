// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.ByteString;
import com.google.protobuf.Message;
import dev.hookgate.hooks.v1alpha1.*;
import dev.hookgate.infrastructure.v1alpha1.DeleteClusterRequest;
import io.grpc.Status;
import io.grpc.StatusException;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Handlers: which one answers, and what becomes of what it returns. */
class ExtensionTest {
  private static final BeforeClusterCreateRequest REQUEST = BeforeClusterCreateRequest.getDefaultInstance();
  private static final Handler<BeforeClusterCreateRequest> DONE = request -> Answer.done();

  private static Extension with(String name, Handler<BeforeClusterCreateRequest> handler) {
    return new Extension().handle(BeforeClusterCreateRequest.class, name, handler);
  }

  private static BeforeClusterCreateResponse call(Extension extension, String handler) throws Exception {
    Message answer = extension.call(handler, REQUEST);
    return BeforeClusterCreateResponse.parseFrom(answer.toByteString());
  }

  private static String internal(String kind) {
    return "handler \"x\": internal error (" + kind + "); search the log of the extension for the call's id";
  }

  static Stream<Arguments> answers() {
    Handler<BeforeClusterCreateRequest> message =
        r -> Answer.of(BeforeClusterCreateResponse.newBuilder().setMessage("why"));
    Handler<BeforeClusterCreateRequest> another = r -> Answer.of(DiscoverVariablesResponse.getDefaultInstance());
    Handler<BeforeClusterCreateRequest> failure = r -> {
      throw new Failure("why");
    };
    Handler<BeforeClusterCreateRequest> broken = r -> {
      throw new IOException("secret");
    };
    Handler<BeforeClusterCreateRequest> endless = ExtensionTest::endless;
    return Stream.of(
        Arguments.of(DONE, ResponseStatus.RESPONSE_STATUS_SUCCESS, "", 0),
        Arguments.of(handler(Answer.wait(30, "why")), ResponseStatus.RESPONSE_STATUS_SUCCESS, "why", 30),
        Arguments.of(handler(Answer.fail("why")), ResponseStatus.RESPONSE_STATUS_FAILURE, "why", 0),
        Arguments.of(message, ResponseStatus.RESPONSE_STATUS_SUCCESS, "why", 0),
        Arguments.of(failure, ResponseStatus.RESPONSE_STATUS_FAILURE, "why", 0),
        Arguments.of(broken, ResponseStatus.RESPONSE_STATUS_FAILURE, internal("IOException"), 0),
        Arguments.of(endless, ResponseStatus.RESPONSE_STATUS_FAILURE, internal("StackOverflowError"), 0),
        Arguments.of(another, ResponseStatus.RESPONSE_STATUS_FAILURE, internal("IllegalStateException"), 0),
        Arguments.of(handler(null), ResponseStatus.RESPONSE_STATUS_FAILURE,
            "handler \"x\" returned null: return Answer.done(), wait(), fail() or of()", 0));
  }

  private static Handler<BeforeClusterCreateRequest> handler(Answer answer) {
    return request -> answer;
  }

  private static Answer endless(BeforeClusterCreateRequest request) {
    return endless(request);
  }

  @ParameterizedTest
  @MethodSource
  void answers(Handler<BeforeClusterCreateRequest> handler, ResponseStatus status, String message, int seconds)
      throws Exception {
    BeforeClusterCreateResponse answer = call(with("x", handler), "");
    assertEquals(status, answer.getStatus());
    assertEquals(message, answer.getMessage());
    assertEquals(seconds, answer.getRetryAfterSeconds());
  }

  @Test
  void statusIsPassedOn() {
    var extension = with("x", request -> {
      throw Status.ABORTED.withDescription("why").asRuntimeException();
    });
    assertEquals("ABORTED: why", assertThrows(StatusException.class, () -> call(extension, "")).getMessage());
  }

  @Test
  void hooksThatCannotWait() throws Exception {
    var extension = new Extension().handle(DiscoverVariablesRequest.class, "x", r -> Answer.wait(1, "why"));
    var answer = extension.call("", DiscoverVariablesRequest.getDefaultInstance());
    assertEquals(internal("IllegalStateException"),
        DiscoverVariablesResponse.parseFrom(answer.toByteString()).getMessage());
    assertThrows(IllegalArgumentException.class, () -> Answer.wait(0, "why"));
    assertThrows(IllegalArgumentException.class, () -> Answer.wait(1, ""));
  }

  @Test
  void selection() throws Exception {
    Extension one = with("only", DONE);
    Extension two = with("a", DONE).handle(BeforeClusterCreateRequest.class, "b", r -> Answer.fail("b"));
    assertEquals("b", call(two, "b").getMessage());
    assertRefused(one, "other", REQUEST, "NOT_FOUND: BeforeClusterCreate has no handler \"other\", but only");
    assertRefused(two, "", REQUEST, "INVALID_ARGUMENT: BeforeClusterCreate has several handlers: name one of a, b");
    assertRefused(one, "", BeforeClusterDeleteRequest.getDefaultInstance(),
        "UNIMPLEMENTED: the extension has no handler of BeforeClusterDelete");
  }

  private static void assertRefused(Extension extension, String handler, Message request, String want) {
    assertEquals(want, assertThrows(StatusException.class, () -> extension.call(handler, request)).getMessage());
  }

  @Test
  void mistakesOfRegistration() {
    assertMistake("handler \"Upper\": the name is not a DNS-1123 label", () -> with("Upper", DONE));
    assertMistake("handler \"a\": there is a handler of this name already",
        () -> with("a", DONE).handle(BeforeClusterCreateRequest.class, "a", DONE));
    assertMistake("handler \"a\": a timeout of 31 seconds", () -> new Extension()
        .handle(BeforeClusterCreateRequest.class, Options.named("a").withTimeoutSeconds(31), DONE));
    assertMistake("handler \"a\": no rpc of its file takes a Variable",
        () -> new Extension().handle(Variable.class, "a", r -> Answer.done()));
  }

  private static void assertMistake(String want, org.junit.jupiter.api.function.Executable mistake) {
    String got = assertThrows(IllegalArgumentException.class, mistake).getMessage();
    assertTrue(got.startsWith(want), got);
  }

  @Test
  void mistakesOfServing() {
    assertTrue(assertThrows(IOException.class, () -> new Server(new Extension()).start()).getMessage()
        .startsWith("the extension has no handlers"));
    assertTrue(assertThrows(IOException.class, () -> new Server(with("a", DONE)).address("192.0.2.1:9090").start())
        .getMessage().startsWith("listen on 192.0.2.1:9090: it is not on loopback"));
  }

  @Test
  void discoveryIsMadeFromTheHandlers() {
    var handlers = with("b", DONE)
        .handle(DeleteClusterRequest.class, Options.named("a").withTimeoutSeconds(5)
            .withFailurePolicy(FailurePolicy.FAILURE_POLICY_IGNORE).withClusterApiVersion("v1beta1"),
            r -> Answer.done())
        .discovery().getHandlersList();
    assertEquals(
        List.of(
            handler("b", "hooks.runtime.cluster.x-k8s.io/v1alpha1", "BeforeClusterCreate", 10,
                FailurePolicy.FAILURE_POLICY_FAIL, "v1beta2"),
            handler("a", "infrastructure.hookgate.dev/v1alpha1", "DeleteCluster", 5,
                FailurePolicy.FAILURE_POLICY_IGNORE, "v1beta1")),
        handlers);
  }

  private static ExtensionHandler handler(
      String name, String apiVersion, String hook, int seconds, FailurePolicy policy, String version) {
    return ExtensionHandler.newBuilder()
        .setName(name)
        .setRequestHook(GroupVersionHook.newBuilder().setApiVersion(apiVersion).setHook(hook))
        .setTimeoutSeconds(seconds)
        .setFailurePolicy(policy)
        .setClusterApiVersion(version)
        .build();
  }

  @Test
  void settings() {
    Map<String, String> settings = Map.of("n", "3", "t", "true", "s", "secret");
    assertEquals(3, Requests.setting(settings, "n", 1));
    assertEquals(true, Requests.setting(settings, "t", Boolean.class));
    assertEquals(1.5, Requests.setting(settings, "other", 1.5));
    assertEquals("setting \"s\": want an integer",
        assertThrows(Failure.class, () -> Requests.setting(settings, "s", 1)).getMessage());
    assertEquals("setting \"other\" is not set",
        assertThrows(Failure.class, () -> Requests.setting(settings, "other", Long.class)).getMessage());
  }

  @Test
  void objects() {
    assertEquals(9007199254740993L, load("{\"n\": 9007199254740993}").path("n").longValue());
    for (var wrong : Map.of("", "there is none", "[]", "not a JSON object", "{\"n\": NaN}", "").entrySet()) {
      String got = assertThrows(io.grpc.StatusRuntimeException.class, () -> load(wrong.getKey())).getMessage();
      assertTrue(got.startsWith("INVALID_ARGUMENT: cluster: " + wrong.getValue()), got);
    }
  }

  private static com.fasterxml.jackson.databind.node.ObjectNode load(String text) {
    var object = RawExtension.newBuilder().setRaw(ByteString.copyFromUtf8(text));
    return Requests.load(BeforeClusterCreateRequest.newBuilder().setCluster(object).build(), "cluster");
  }
}
