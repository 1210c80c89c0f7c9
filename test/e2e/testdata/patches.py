# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""A GeneratePatches handler, with the standard library only: python3 patches.py PORT CERT_DIR

It sets the commands that run before kubeadm, with merge patches.
"""

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOOKS = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
API_VERSION = "hooks.runtime.cluster.x-k8s.io/v1alpha1"


def discovery(request):
    hook = {"apiVersion": API_VERSION, "hook": "GeneratePatches"}
    return {"kind": "DiscoveryResponse", "handlers": [{"name": "commands", "requestHook": hook}]}


def generate_patches(request):
    items = []
    for item in request["items"]:
        change = {"preKubeadmCommands": ["python"]}
        if item["object"]["kind"] == "KubeadmControlPlaneTemplate":
            change = {"kubeadmConfigSpec": change}
        elif item["object"]["kind"] != "KubeadmConfigTemplate":
            continue
        patch = json.dumps({"spec": {"template": {"spec": change}}}).encode()
        items.append({"uid": item["uid"], "patchType": "JSONMergePatch", "patch": base64.b64encode(patch).decode()})
    return {"kind": "GeneratePatchesResponse", "items": items}


PATHS = {HOOKS + "discovery": discovery, HOOKS + "generatepatches/commands": generate_patches}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        hook = PATHS.get(self.path.split("?")[0])
        if hook is None:
            self.send_error(404)
            return
        body = json.dumps({"apiVersion": API_VERSION, "status": "Success", **hook(request)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main():
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2] + "/tls.crt", sys.argv[2] + "/tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
