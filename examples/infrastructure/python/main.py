# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An infrastructure provider in four functions, as plain JSON over HTTPS, with the standard library only.

It makes networks and machines in a cloud with a JSON API, the one at CLOUD_URL. Everything that it makes has the
externalId of its subject as its name there, so it keeps no state, may be killed at any moment, and several of it may run.

    CLOUD_URL=http://127.0.0.1:8000 python3 main.py 127.0.0.1:9443 CERT_DIR

CERT_DIR has tls.crt and tls.key. The gateway trusts the CA in the caBundle of the ExtensionConfig.
"""

import http.client
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

API_VERSION = "infrastructure.hookgate.dev/v1alpha1"
PROVIDER_ID_PREFIX = "fake://"
BODY_LIMIT = 20 << 20
ANSWER_LIMIT = 1 << 20

MACHINE_PARAMETERS = {
    "type": "object",
    "properties": {
        "size": {
            "type": "string",
            "enum": ["small", "large"],
            "default": "small",
            "description": "The size of the machine.",
        }
    },
}


class CloudError(Exception):
    """The cloud's answer to a request that failed."""

    def __init__(self, status, reason, message):
        super().__init__(f"{reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


class Unanswered(Exception):
    """The cloud does not answer, which says nothing about what exists there."""


def ask(method, path, subject, body=None):
    """Call the cloud about the thing that has the externalId of the subject."""
    request = urllib.request.Request(
        os.environ["CLOUD_URL"] + path + subject["externalId"],
        method=method,
        data=None if body is None else json.dumps(body).encode(),
    )
    token = subject.get("credentials", {}).get("token", "").strip()
    if token:
        request.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            text = response.read(ANSWER_LIMIT)
            return json.loads(text) if text else {}
    except urllib.error.HTTPError as e:
        try:
            failure = json.loads(e.read(ANSWER_LIMIT))
            raise CloudError(e.code, failure["reason"], failure["message"]) from None
        except (ValueError, KeyError, TypeError):
            raise CloudError(e.code, "CloudError", "the cloud refused") from None
    except (OSError, http.client.HTTPException, ValueError):
        raise Unanswered("the cloud does not answer") from None


def state_of(thing):
    """Return the members of an answer that say how far a thing of the cloud is."""
    if thing["state"] == "running":
        return {"phase": "Ready"}
    if thing["state"] == "failed":
        return {"phase": "Failed", "reason": thing.get("reason", "CloudError"), "message": thing.get("message", "")}
    return {"phase": "Provisioning"}


def reconciling(function):
    """Turn what the cloud refuses into the phase Failed, unless the cloud itself is broken.

    A cloud that is full answers as one that is broken, with a status of 5xx.
    """

    def hook(request):
        try:
            return function(request)
        except CloudError as e:
            if e.reason == "NotFound":
                return {"phase": "Failed", "reason": "InstanceGone", "message": e.message}
            if e.status < 500 or e.reason == "InsufficientCapacity":
                return {"phase": "Failed", "reason": e.reason, "message": e.message}
            raise

    return hook


@reconciling
def reconcile_cluster(request):
    """Make the network of a cluster, whose load balancer is the endpoint of its API server."""
    spec = {}
    if "controlPlaneEndpoint" in request:
        spec["endpoint"] = request["controlPlaneEndpoint"]
    network = ask("PUT", "/networks/", request["subject"], spec)
    answer = state_of(network)
    if network.get("endpoint"):
        answer["controlPlaneEndpoint"] = network["endpoint"]
    answer["failureDomains"] = [{"name": name, "controlPlane": True} for name in network["failureDomains"]]
    return answer


@reconciling
def reconcile_machine(request):
    """Make a machine, or look at one that was recorded: that one is never made again."""
    subject = request["subject"]
    if request.get("providerId"):
        machine = ask("GET", "/machines/", subject)
    else:
        machine = ask(
            "PUT",
            "/machines/",
            subject,
            {
                "network": subject["clusterExternalId"],
                "name": subject["name"],
                "controlPlane": request.get("controlPlane", False),
                "version": request.get("version", ""),
                "failureDomain": request.get("failureDomain", ""),
                "bootstrap": request.get("bootstrap"),
                "tags": {"size": subject.get("parameters", {}).get("size", "small")},
            },
        )
    return state_of(machine) | {
        "providerId": machine["providerID"],
        "addresses": machine["addresses"],
        "failureDomain": machine["failureDomain"],
    }


def deleting(path):
    """Return a hook that deletes. Only the cloud's own "not found" means that a thing is gone."""

    def hook(request):
        try:
            ask("DELETE", path, request["subject"])
        except CloudError as e:
            if e.reason == "NotFound":
                return {"state": "Gone"}
            raise
        return {"state": "Deleting"}

    return hook


HOOKS = {
    "ReconcileCluster": reconcile_cluster,
    "DeleteCluster": deleting("/networks/"),
    "ReconcileMachine": reconcile_machine,
    "DeleteMachine": deleting("/machines/"),
}


def discover(_):
    """Announce the four functions, and the parameters of machines."""
    return {
        "handlers": [
            {"name": name.lower(), "requestHook": {"apiVersion": API_VERSION, "hook": name}} for name in HOOKS
        ],
        "providerIdPrefix": PROVIDER_ID_PREFIX,
        "machineParameters": MACHINE_PARAMETERS,
    }


ROUTES = {name.lower(): (name, function) for name, function in HOOKS.items()}
ROUTES["discoverinfrastructure"] = ("DiscoverInfrastructure", discover)


class Handler(BaseHTTPRequestHandler):
    """Answers POST /infrastructure.hookgate.dev/v1alpha1/<hook>[/<handler>]."""

    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        segments = self.path.partition("?")[0].split("/")
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            self.close_connection = True
            self.send_error(413 if length.isdigit() else 411)
            return
        body = self.rfile.read(int(length))
        if "/".join(segments[1:3]) != API_VERSION or len(segments) not in (4, 5) or segments[3] not in ROUTES:
            self.send_error(404)
            return
        name, function = ROUTES[segments[3]]
        answer = {"apiVersion": API_VERSION, "kind": name + "Response", "status": "Success", "retryAfterSeconds": 0}
        try:
            answer |= function(json.loads(body))
        except (CloudError, Unanswered) as e:
            answer |= {"status": "Failure", "message": str(e)}
        except (AttributeError, KeyError, TypeError, ValueError):
            answer |= {"status": "Failure", "message": "the request, or the cloud's answer, lacks what it must have"}
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Log nothing: paths have no secrets, but a request is no event."""


class Server(ThreadingHTTPServer):
    """Speaks TLS, with the handshake in the thread of the connection."""

    daemon_threads = True

    def __init__(self, address, certificates):
        super().__init__(address, Handler)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(os.path.join(certificates, "tls.crt"), os.path.join(certificates, "tls.key"))

    def finish_request(self, request, client_address):
        request.settimeout(60)
        with self.tls.wrap_socket(request, server_side=True) as connection:
            super().finish_request(connection, client_address)

    def handle_error(self, *_):
        """A connection that breaks is the other side's affair."""


if __name__ == "__main__":
    if len(sys.argv) != 3 or "CLOUD_URL" not in os.environ:
        sys.exit("usage: CLOUD_URL=http://HOST:PORT python3 main.py ADDRESS CERT_DIR")
    host, _, port = sys.argv[1].rpartition(":")
    server = Server((host, int(port)), sys.argv[2])
    print(f"listening on {host}:{server.server_port}", flush=True)
    server.serve_forever()
