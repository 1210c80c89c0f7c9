# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Holds a Machine before it is terminated until its volumes are detached: main.py HOST:PORT CERT_DIR.

Cluster API waits for the volumes that Kubernetes knows. Those that a storage system has attached by itself, it does not
know: the storage API at VOLUMES_URL does, which answers GET /attachments?node=NAME with a JSON list of names.
"""

import json
import os
import sys
from urllib.parse import quote
from urllib.request import urlopen

from hookgate import Answer, Extension, done, load, member, wait
from hookgate.machines import v1alpha1 as machines

extension = Extension()


@extension.handler
def volumes_detached(request: machines.BeforeMachineTerminateRequest) -> Answer:
    """Lets a Machine go that has no Node, and one whose Node has no volumes."""
    node = member(load(request, "machine"), "status", "nodeRef", "name")
    if not node:
        return done()
    url = f"{os.environ['VOLUMES_URL']}/attachments?node={quote(node)}"
    with urlopen(url, timeout=5) as response:
        attached = sorted(json.load(response))
    if attached:
        return wait(10, f"volumes are attached to {node}: {', '.join(attached[:10])}")
    return done()


if __name__ == "__main__":
    if len(sys.argv) != 3 or "VOLUMES_URL" not in os.environ:
        sys.exit("usage: VOLUMES_URL=http://HOST:PORT python main.py ADDRESS CERT_DIR")
    extension.serve(sys.argv[1], tls_cert=sys.argv[2] + "/tls.crt", tls_key=sys.argv[2] + "/tls.key")
