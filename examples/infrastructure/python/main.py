# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An infrastructure provider in four functions, over gRPC, for a cloud with a JSON API, the one at CLOUD_URL.

Everything that it makes has the external_id of its subject as its name there, so it keeps no state, may be killed at any
moment, and several of it may run. CERT_DIR has tls.crt and tls.key.
"""

import base64
import json
import os
import sys
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from hookgate import Extension, Failure
from hookgate.hooks.v1alpha1 import JSON
from hookgate.infrastructure import v1alpha1 as infrastructure

extension = Extension()


@extension.handler
def discover(_: infrastructure.DiscoverInfrastructureRequest) -> infrastructure.DiscoverInfrastructureResponse:
    """Announces the parameters of machines. The package adds the other handlers."""
    size = {"type": "string", "enum": ["small", "large"], "default": "small", "description": "The size of the machine."}
    schema = JSON(raw=json.dumps({"type": "object", "properties": {"size": size}}).encode())
    return infrastructure.DiscoverInfrastructureResponse(provider_id_prefix="fake://", machine_parameters=schema)


@extension.handler
def reconcile_cluster(request: infrastructure.ReconcileClusterRequest) -> infrastructure.ReconcileClusterResponse:
    """Makes the network of a cluster, whose load balancer is the endpoint of its API server."""
    spec, recorded = {}, request.control_plane_endpoint
    if request.HasField("control_plane_endpoint"):
        spec["endpoint"] = {"host": recorded.host, "port": recorded.port}
    network = reconcile("PUT", "/networks/", request.subject, spec)
    endpoint, names = network.get("endpoint"), network.get("failureDomains", [])
    return infrastructure.ReconcileClusterResponse(
        **phase(network),
        control_plane_endpoint=infrastructure.Endpoint(**endpoint) if endpoint else None,
        failure_domains=[infrastructure.FailureDomain(name=name, control_plane=True) for name in names],
    )


@extension.handler
def delete_cluster(request: infrastructure.DeleteClusterRequest) -> infrastructure.DeleteClusterResponse:
    """Deletes the network."""
    return infrastructure.DeleteClusterResponse(state=delete("/networks/", request.subject))


@extension.handler
def reconcile_machine(request: infrastructure.ReconcileMachineRequest) -> infrastructure.ReconcileMachineResponse:
    """Makes a machine, or looks at one that was recorded: that one is never made again."""
    subject, bootstrap = request.subject, request.bootstrap
    if request.provider_id:
        machine = reconcile("GET", "/machines/", subject)
    else:
        parameters = json.loads(subject.parameters.raw or b"{}")
        spec = {
            "network": subject.cluster_external_id,
            "name": subject.name,
            "controlPlane": request.control_plane,
            "version": request.version,
            "failureDomain": request.failure_domain,
            "bootstrap": {"data": base64.b64encode(bootstrap.data).decode(), "format": bootstrap.format},
            "tags": {"size": parameters.get("size", "small")},
        }
        machine = reconcile("PUT", "/machines/", subject, spec)
    return infrastructure.ReconcileMachineResponse(
        **phase(machine),
        provider_id=machine.get("providerID"),
        addresses=[infrastructure.MachineAddress(**address) for address in machine.get("addresses", [])],
        failure_domain=machine.get("failureDomain"),
    )


@extension.handler
def delete_machine(request: infrastructure.DeleteMachineRequest) -> infrastructure.DeleteMachineResponse:
    """Deletes the machine."""
    return infrastructure.DeleteMachineResponse(state=delete("/machines/", request.subject))


class CloudError(Failure):
    """The cloud's answer to a request that failed: a Failure, unless the hook has another answer for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


def reconcile(method: str, path: str, subject: infrastructure.Subject, spec: Any = None) -> Any:
    """Returns the thing of the subject. What the cloud refuses has failed, unless the cloud itself is broken.

    A cloud that is full answers as one that is broken, with a status of 5xx.
    """
    try:
        return ask(method, path, subject, spec)
    except CloudError as error:
        if error.status >= 500 and error.reason != "InsufficientCapacity":
            raise
        reason = "InstanceGone" if error.reason == "NotFound" else error.reason
        return {"state": "failed", "reason": reason, "message": error.message}


def phase(thing: Any) -> dict[str, Any]:
    """Returns the fields of an answer that say how far a thing of the cloud is."""
    if thing["state"] == "failed":
        reason, message = thing.get("reason", "CloudError"), thing.get("message", "the cloud does not say why")
        return {"phase": infrastructure.PHASE_FAILED, "reason": reason, "message": message}
    return {"phase": infrastructure.PHASE_READY if thing["state"] == "running" else infrastructure.PHASE_PROVISIONING}


def delete(path: str, subject: infrastructure.Subject) -> "infrastructure.DeletionState.ValueType":
    """Deletes the thing of the subject. Only the cloud's own "not found" means that it is gone."""
    try:
        ask("DELETE", path, subject)
    except CloudError as error:
        if error.reason == "NotFound":
            return infrastructure.DELETION_STATE_GONE
        raise
    return infrastructure.DELETION_STATE_DELETING


def ask(method: str, path: str, subject: infrastructure.Subject, body: Any = None) -> Any:
    """Calls the cloud about the thing that has the external_id of the subject. Errors do not have the credentials."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(os.environ["CLOUD_URL"] + path + subject.external_id, data, method=method)
    if token := subject.credentials.get("token", "").strip():
        request.add_header("Authorization", "Bearer " + token)
    try:
        try:
            response = urlopen(request, timeout=20)
        except HTTPError as error:
            response = error
        with response:
            status, answer = response.status, json.loads(response.read(1 << 20) or b"{}")
    except (OSError, HTTPException):
        raise Failure("the cloud does not answer") from None
    except ValueError:  # http.client's about a header has the header
        raise Failure("the token cannot be sent, or the cloud's answer is not JSON") from None
    if status >= 300:
        raise CloudError(status, answer.get("reason") or "CloudError", answer.get("message") or "the cloud refused")
    return answer


if __name__ == "__main__":
    if len(sys.argv) != 3 or "CLOUD_URL" not in os.environ:
        sys.exit("usage: CLOUD_URL=http://HOST:PORT python main.py ADDRESS CERT_DIR")
    extension.serve(sys.argv[1], tls_cert=sys.argv[2] + "/tls.crt", tls_key=sys.argv[2] + "/tls.key")
