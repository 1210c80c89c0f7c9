# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

# An extension in plain JSON, with nothing but Python's standard library. Its argument is the port; tls.crt and
# tls.key are in the current folder. docs/plain-json.md shows how to run it.

import http.server, json, ssl, sys, urllib.parse

HOOKS = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
VERSION = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
LIMIT = 20 << 20  # the largest body that callers send


def discovery(request):
    handler = {
        "name": "require-team",
        "requestHook": {"apiVersion": VERSION, "hook": "BeforeClusterCreate"},
        "timeoutSeconds": 10,
        "failurePolicy": "Fail",
    }
    return {"kind": "DiscoveryResponse", "status": "Success", "handlers": [handler]}


def require_team(request):
    metadata = request["cluster"]["metadata"]
    answer = {"kind": "BeforeClusterCreateResponse", "status": "Success", "retryAfterSeconds": 0}
    if "team" not in (metadata.get("labels") or {}):
        answer["retryAfterSeconds"] = 30
        answer["message"] = f"Cluster {metadata['name']} waits for the label team"
    return answer


ROUTES = {"discovery": discovery, "beforeclustercreate/require-team": require_team}


class Extension(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections

    def handle(self):
        try:
            super().handle()
        except OSError:
            pass  # the caller has left

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > LIMIT:
            self.close_connection = True  # the body is still to come
            return self.answer(413, {"message": f"the body has more than {LIMIT} bytes"})
        body = self.rfile.read(length)
        path = urllib.parse.urlsplit(self.path).path  # without ?timeout=10s
        route = ROUTES.get(path.removeprefix(HOOKS))
        if route is None:
            return self.answer(404, {"message": f"there is no {path}"})
        try:
            answer = route(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            return self.answer(400, {"message": f"the request cannot be read: {type(e).__name__}"})
        self.answer(200, {"apiVersion": VERSION, **answer})

    def answer(self, code, content):
        body = json.dumps(content).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass  # one line for each request


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Extension)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("tls.crt", "tls.key")
# Handshakes are made by the threads of connections: a slow caller keeps no other waiting.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
