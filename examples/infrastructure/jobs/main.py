# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An infrastructure provider whose work is done by slow commands in the background, such as Terraform or a script.

    APPLY='python3 cloud.py apply' DESTROY='python3 cloud.py destroy' JOBS_DIR=DIR python3 main.py ADDRESS CERT_DIR

A shell runs a command, with the directory of what it makes as its last argument. Each externalId has a directory:

    input.json    the request of the hook, without credentials; these are JSON in the variable CREDENTIALS
    outputs.json  what APPLY leaves when it succeeds: the members of the answer, such as providerId
    log           what the command printed; the last line is the reason of a failure, as "QuotaExceeded: …"
    job, status   what was started last, and the exit status of that; 75 says nothing about what exists
    result        the last answer
    lock          only its holder may do something here; a command inherits it, so it is free when the command ends

All that is known is there, so the provider and its commands may be killed at any moment. What did not end is started
again: a command must find what it made before.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

API_VERSION = "infrastructure.hookgate.dev/v1alpha1"
REFRESH = float(os.environ.get("REFRESH", "600"))  # seconds after which APPLY looks again at what is ready
BODY_LIMIT = 20 << 20
TEMPORARY = 75  # EX_TEMPFAIL of sysexits.h


class Unknown(Exception):
    """Nothing is known about what exists."""


def directory(kind, request):
    """Return the directory of a subject."""
    name = request["subject"]["externalId"]
    if not re.fullmatch("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
        raise Unknown("the externalId is not a DNS-1123 label")
    return pathlib.Path(os.environ["JOBS_DIR"]).absolute() / kind / name


@contextlib.contextmanager
def locked(path):
    """Yield the lock of a directory, or None while another call or a command has it."""
    with open(path / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = os.path.samestat(os.fstat(lock.fileno()), os.stat(lock.name))  # or it was removed
        except (BlockingIOError, FileNotFoundError):
            mine = False
        yield lock if mine else None  # closing it does not take it from a command


def read(path, name):
    """Return the text of a file, or None if there is none."""
    try:
        return (path / name).read_text(errors="replace")
    except FileNotFoundError:
        return None


def write(path, name, text):
    """Replace a file in one step."""
    (path / ("." + name)).write_text(text)
    (path / ("." + name)).rename(path / name)


def start(job, path, lock, request):
    """Start a command, which inherits the lock."""
    (path / "status").unlink(missing_ok=True)
    subject = dict(request["subject"])
    environment = os.environ | {"CREDENTIALS": json.dumps(subject.pop("credentials", {}))}
    write(path, "input.json", json.dumps(request | {"subject": subject}))
    write(path, "job", job)
    script = 'exec </dev/null >"$1/log" 2>&1; (%s "$1"); echo $? >"$1/.status" && mv "$1/.status" "$1/status"'
    command = ["/bin/sh", "-c", script % os.environ[job], "sh", path]
    process = subprocess.Popen(command, env=environment, pass_fds=[lock.fileno()], start_new_session=True)
    threading.Thread(target=process.wait, daemon=True).start()


def failure(path, request):
    """Return the reason and the message of a command that failed: its last line, without credentials."""
    line = ((read(path, "log") or "").strip().splitlines() or ["it printed nothing"])[-1][:500]
    for value in request["subject"].get("credentials", {}).values():
        line = line.replace(value.strip() or value, "***") if value else line
    reason, separator, message = line.partition(": ")
    return (reason, message) if separator and re.fullmatch("[A-Z][A-Za-z]{1,99}", reason) else ("JobFailed", line)


def outputs(path):
    """Return the answer for what APPLY has made."""
    try:
        return {"phase": "Ready"} | json.loads(read(path, "outputs.json") or "")
    except (TypeError, ValueError):
        return {"phase": "Failed", "reason": "JobFailed", "message": "APPLY left no JSON object in outputs.json"}


def spec(request):
    """Return what APPLY is run again for at once if it changes."""
    return [request["subject"].get("parameters"), *map(request.get, ("version", "failureDomain", "controlPlaneEndpoint"))]


def reconciling(kind):
    """Return a hook that has APPLY make something, and look at it again from time to time."""

    def hook(request):
        path = directory(kind, request)
        path.mkdir(parents=True, exist_ok=True)
        with locked(path) as lock:
            last = json.loads(read(path, "result") or '{"answer": {"phase": "Provisioning"}}')
            if read(path, "job") == "DESTROY":
                return {"phase": "Failed", "reason": "BeingDeleted", "message": "its deletion has begun"}
            if not lock:
                return last["answer"]  # until the command ends
            status = read(path, "status")
            if status is None:
                known = last["answer"]["phase"] == "Ready" and last["spec"] == spec(request)
                if not known or time.time() - last["time"] > REFRESH:
                    start("APPLY", path, lock, request)
                return last["answer"]
            reason, message = failure(path, request)
            (path / "status").unlink()
            if int(status) == TEMPORARY:
                raise Unknown(f"{reason}: {message}")
            answer = {"phase": "Failed", "reason": reason, "message": message} if int(status) else outputs(path)
            last = {"answer": answer, "spec": spec(json.loads(read(path, "input.json"))), "time": time.time()}
            write(path, "result", json.dumps(last))
            return answer

    return hook


def deleting(kind):
    """Return a hook that has DESTROY remove something, and says that it is gone once the directory is, too."""

    def hook(request):
        path = directory(kind, request)
        trash = path.with_name("." + path.name)
        shutil.rmtree(trash, ignore_errors=True)  # of a provider that was killed
        if not path.is_dir() and not request.get("providerId"):
            return {"state": "Gone"}  # nothing was ever started
        path.mkdir(parents=True, exist_ok=True)
        with locked(path) as lock:
            if not lock:
                return {"state": "Deleting"}
            status = read(path, "status") if read(path, "job") == "DESTROY" else None
            if status is None:
                start("DESTROY", path, lock, request)
                return {"state": "Deleting"}
            if int(status):
                (path / "status").unlink()
                raise Unknown(": ".join(failure(path, request)))
            path.rename(trash)  # in one step, so that no part of it is taken for the whole
            shutil.rmtree(trash)
            return {"state": "Gone"}

    return hook


HOOKS = {
    "ReconcileCluster": reconciling("clusters"),
    "DeleteCluster": deleting("clusters"),
    "ReconcileMachine": reconciling("machines"),
    "DeleteMachine": deleting("machines"),
}


def discover(_):
    """Announce the four functions. Parameters are passed on to the commands as they are."""
    return {
        "handlers": [{"name": n.lower(), "requestHook": {"apiVersion": API_VERSION, "hook": n}} for n in HOOKS],
        "providerIdPrefix": os.environ.get("PROVIDER_ID_PREFIX", "fake://"),
        "machineParameters": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    }


ROUTES = {name.lower(): (name, function) for name, function in (HOOKS | {"DiscoverInfrastructure": discover}).items()}


class Handler(BaseHTTPRequestHandler):
    """Answers POST /infrastructure.hookgate.dev/v1alpha1/<hook>[/<handler>]."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        segments = self.path.partition("?")[0].split("/")
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > BODY_LIMIT:
            self.close_connection = True
            return self.send_error(413 if length.isdigit() else 411)
        body = self.rfile.read(int(length))
        if "/".join(segments[1:3]) != API_VERSION or len(segments) not in (4, 5) or segments[3] not in ROUTES:
            return self.send_error(404)
        name, function = ROUTES[segments[3]]
        answer = {"apiVersion": API_VERSION, "kind": name + "Response", "status": "Success", "retryAfterSeconds": 0}
        try:
            answer |= function(json.loads(body))
        except (Unknown, AttributeError, KeyError, OSError, TypeError, ValueError) as e:
            text = str(e) if isinstance(e, Unknown) else f"the request or the directory is broken: {type(e).__name__}"
            answer |= {"status": "Failure", "message": text}
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
    if len(sys.argv) != 3 or not {"APPLY", "DESTROY", "JOBS_DIR"} <= os.environ.keys():
        sys.exit("usage: APPLY=COMMAND DESTROY=COMMAND JOBS_DIR=DIR python3 main.py ADDRESS CERT_DIR")
    os.umask(0o077)  # bootstrap data has secrets
    host, _, port = sys.argv[1].rpartition(":")
    server = Server((host, int(port)), sys.argv[2])
    print(f"listening on {host}:{server.server_port}", flush=True)
    server.serve_forever()
