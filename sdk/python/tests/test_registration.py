# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""What is registered, and what discovery says about it."""

from collections.abc import Callable
from typing import Any

import pytest

from hookgate import Answer, Extension, StatusError, done
from hookgate.hooks.v1alpha1 import (
    BeforeClusterCreateRequest,
    BeforeClusterUpgradeRequest,
    BeforeClusterUpgradeResponse,
    DiscoveryRequest,
    GroupVersionHook,
)
from hookgate.infrastructure.v1alpha1 import (
    DiscoverInfrastructureRequest,
    DiscoverInfrastructureResponse,
    ReconcileMachineRequest,
    ReconcileMachineResponse,
)


def test_discovery_is_made_from_the_handlers() -> None:
    extension = Extension()

    @extension.handler(timeout=30, failure_policy="Ignore", cluster_api_version="v1beta1")
    def second_of_two(request: BeforeClusterUpgradeRequest) -> Answer:
        return done()

    @extension.handler
    def first(request: BeforeClusterUpgradeRequest) -> Answer:
        return done()

    @extension.handler(name="named", cluster_api_version=None)
    def ignored(request: "BeforeClusterCreateRequest") -> Answer:
        return done()

    response = extension.call(DiscoveryRequest())
    listed = [
        (h.name, h.request_hook.hook, h.request_hook.api_version, h.timeout_seconds, h.failure_policy, h.cluster_api_version)
        for h in response.handlers
    ]
    group = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
    assert response.status == 1
    assert listed == [
        ("second-of-two", "BeforeClusterUpgrade", group, 30, 1, "v1beta1"),
        ("first", "BeforeClusterUpgrade", group, 10, 2, "v1beta2"),
        ("named", "BeforeClusterCreate", group, 10, 2, ""),
    ]


def test_each_group_lists_its_own_handlers() -> None:
    extension = Extension()

    @extension.handler
    def create(request: BeforeClusterCreateRequest) -> Answer:
        return done()

    @extension.handler
    def machine(request: ReconcileMachineRequest) -> ReconcileMachineResponse:
        return ReconcileMachineResponse(provider_id="acme://1")

    infrastructure = extension.call(DiscoverInfrastructureRequest())
    assert [h.name for h in infrastructure.handlers] == ["machine"]
    assert infrastructure.handlers[0].request_hook.api_version == "infrastructure.hookgate.dev/v1alpha1"
    assert [h.name for h in extension.call(DiscoveryRequest()).handlers] == ["create"]
    assert extension.call(ReconcileMachineRequest()).status == 1

    @extension.handler
    def announce(request: DiscoverInfrastructureRequest) -> DiscoverInfrastructureResponse:
        return DiscoverInfrastructureResponse(provider_id_prefix="acme://")

    answer = extension.call(DiscoverInfrastructureRequest(handler="machine"))
    assert (answer.provider_id_prefix, [h.name for h in answer.handlers]) == ("acme://", ["machine"])


def create(request: BeforeClusterCreateRequest) -> Answer:
    """A handler to register."""
    return done()


def no_annotation(request) -> Answer:  # type: ignore[no-untyped-def]
    """A handler of no hook."""
    return done()


def a_response(request: BeforeClusterUpgradeResponse) -> Answer:
    """A handler of a message that is no request."""
    return done()


def nothing() -> Answer:
    """A handler of nothing."""
    return done()


def _Underlined(request: BeforeClusterCreateRequest) -> Answer:
    return done()


def unreadable(request: "Missing") -> Answer:  # type: ignore[name-defined]  # noqa: F821
    """A handler of a type that is not there."""
    return done()


@pytest.mark.parametrize(
    ("function", "options", "text"),
    [
        (create, {"name": "Create"}, 'handler "Create": the name is not a DNS-1123 label'),
        (create, {"name": "x" * 64}, "the name is not a DNS-1123 label"),
        (_Underlined, {}, 'handler "-Underlined": the name is not a DNS-1123 label'),
        (create, {"timeout": 31}, 'handler "create": the timeout is 31: want 0 to 30 seconds'),
        (create, {"timeout": -1}, "the timeout is -1"),
        (create, {"timeout": True}, "the timeout is True"),
        (create, {"failure_policy": "ignore"}, 'the failure policy is \'ignore\': want "Fail" or "Ignore"'),
        (create, {"cluster_api_version": "v1"}, "the version of objects is 'v1'"),
        (no_annotation, {}, 'handler "no-annotation": annotate its parameter with the request of a hook'),
        (a_response, {}, "hookgate.hooks.v1alpha1.BeforeClusterUpgradeResponse is the request of no hook"),
        (nothing, {}, "want a function of the request"),
        (unreadable, {}, "the annotation of its parameter cannot be read: name 'Missing' is not defined"),
    ],
)
def test_mistakes_are_errors_at_once(function: Callable[..., Any], options: dict[str, Any], text: str) -> None:
    extension = Extension()
    with pytest.raises(ValueError) as error:  # noqa: PT011
        extension.handler(**options)(function)
    assert text in str(error.value)
    assert extension.handlers == ()


def test_a_name_is_taken_once() -> None:
    extension = Extension()
    extension.handler(create)
    with pytest.raises(ValueError, match='handler "create": there is one for BeforeClusterCreate already'):
        extension.handler(name="create")(create)


def test_a_group_that_is_not_known_is_stated() -> None:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="acme/dns/v1/dns.proto", package="acme.dns.v1", syntax="proto3")
    text, enum = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_ENUM
    file.enum_type.add(name="Status").value.add(name="STATUS_UNSPECIFIED", number=0)
    for name in ("DiscoverDNS", "RemoveRecord"):
        file.message_type.add(name=f"{name}Request").field.add(name="handler", number=1, type=text, label=1, json_name="handler")
        response = file.message_type.add(name=f"{name}Response")
        response.field.add(name="status", number=1, type=enum, type_name=".acme.dns.v1.Status", label=1, json_name="status")
        response.field.add(name="message", number=2, type=text, label=1, json_name="message")
        response.field.add(name="handlers", number=3, type=text, label=3, json_name="handlers")
        service = file.service.add(name="DiscoveryService" if name == "DiscoverDNS" else "RecordService")
        service.method.add(name=name, input_type=f".acme.dns.v1.{name}Request", output_type=f".acme.dns.v1.{name}Response")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    request = message_factory.GetMessageClass(pool.FindMessageTypeByName("acme.dns.v1.RemoveRecordRequest"))

    def remove(request: Any) -> Answer:
        return done()

    remove.__annotations__["request"] = request
    with pytest.raises(ValueError, match=r"API group of the package acme\.dns\.v1 is not known: state it, as in Extension\(groups"):
        Extension().handler(remove)
    for key in ("acme.dns.v1", "acme.dns"):
        extension = Extension(groups={key: "dns.acme.example"})
        extension.handler(remove)
        assert extension.handlers[0].hook.api_version == "dns.acme.example/v1"


def two() -> Extension:
    """An extension with two handlers of a hook."""
    extension = Extension()

    @extension.handler
    def one(request: BeforeClusterUpgradeRequest) -> BeforeClusterUpgradeResponse:
        return BeforeClusterUpgradeResponse(message="one")

    @extension.handler
    def other(request: BeforeClusterUpgradeRequest) -> BeforeClusterUpgradeResponse:
        return BeforeClusterUpgradeResponse(message="other")

    return extension


def test_the_request_selects_the_handler() -> None:
    assert two().call(BeforeClusterUpgradeRequest(handler="other")).message == "other"
    assert two().call(BeforeClusterUpgradeRequest(), handler="one").message == "one"


@pytest.mark.parametrize(
    ("request_message", "code", "text"),
    [
        (
            BeforeClusterUpgradeRequest(),
            "INVALID_ARGUMENT",
            'BeforeClusterUpgrade has several handlers: name one of "one", "other"',
        ),
        (BeforeClusterUpgradeRequest(handler="x"), "NOT_FOUND", 'BeforeClusterUpgrade has no handler "x", but "one", "other"'),
    ],
)
def test_a_call_without_its_handler(request_message: Any, code: str, text: str) -> None:
    with pytest.raises(StatusError) as error:
        two().call(request_message)
    assert (error.value.code.name, str(error.value)) == (code, text)


def test_both_packages_name_their_messages() -> None:
    import hookgate.hooks.v1alpha1 as package

    assert GroupVersionHook.DESCRIPTOR.full_name == "hookgate.hooks.v1alpha1.GroupVersionHook"
    assert {"JSON", "RESPONSE_STATUS_SUCCESS", "ResponseStatus", "Variable"} <= set(dir(package))
    with pytest.raises(AttributeError, match=r"module hookgate\.hooks\.v1alpha1 has no attribute Banana"):
        package.Banana  # type: ignore[attr-defined]  # noqa: B018
