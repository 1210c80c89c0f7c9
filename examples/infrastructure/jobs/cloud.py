# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""Make or remove one network or machine in a cloud, the one at CLOUD_URL, and wait until that is done.

    python3 cloud.py apply|destroy DIR

The cloud makes another machine at every POST. Two things keep that from happening when this is killed and run again:
a tag with the externalId that is looked for before, and a client token, by which the cloud knows the request again
even if its list is late.
"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

TEMPORARY = 75  # the exit status if nothing is known about what exists
TAG = "external-id"
WAIT = 3600  # seconds


def ask(method, path, body=None, absent=False):
    """Call the cloud. With absent, something that is not there is None."""
    request = urllib.request.Request(
        os.environ["CLOUD_URL"] + path, method=method, data=None if body is None else json.dumps(body).encode()
    )
    token = json.loads(os.environ.get("CREDENTIALS", "{}")).get("token", "").strip()
    if token:
        request.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.loads(response.read() or "{}")
    except urllib.error.HTTPError as e:
        if e.code == 404 and absent:
            return None
        try:
            refusal = json.loads(e.read())
            reason, message = refusal["reason"], refusal["message"]
        except (ValueError, KeyError, TypeError):
            reason, message = "CloudError", "the cloud refused"
        print(f"{reason}: {message}")
        sys.exit(TEMPORARY if e.code >= 500 and reason != "InsufficientCapacity" else 1)
    except (OSError, http.client.HTTPException, ValueError):
        print("Unavailable: the cloud does not answer")
        sys.exit(TEMPORARY)


def find(name):
    """Return the machine with the tag, or None."""
    found = ask("GET", "/machines?" + urllib.parse.urlencode({"tag": f"{TAG}={name}"}))
    if found["count"] != len(found["items"]):
        print("Unavailable: the cloud's list is not complete")
        sys.exit(TEMPORARY)
    if len({machine["id"] for machine in found["items"]}) > 1:
        print("Conflict: more than one machine has the tag")
        sys.exit(1)
    return found["items"][0] if found["items"] else None


def make_machine(request):
    """Return the machine: the one that is there, or a new one if none was recorded."""
    subject = request["subject"]
    if request.get("providerId"):
        machine = ask("GET", "/machines/" + identifier(request), absent=True)
        if machine is None:
            print("InstanceGone: the machine that was recorded is not there")
            sys.exit(1)
        return machine
    spec = {
        "network": subject["clusterExternalId"],
        "name": subject["name"],
        "controlPlane": request.get("controlPlane", False),
        "version": request.get("version", ""),
        "failureDomain": request.get("failureDomain", ""),
        "bootstrap": request.get("bootstrap"),
        "tags": {TAG: subject["externalId"]},
        "clientToken": subject["externalId"],
    }
    return find(subject["externalId"]) or ask("POST", "/machines", spec)


def identifier(request):
    """Return the cloud's name of the machine that was recorded."""
    return request["providerId"].rpartition("/")[2]


def wait(path, done):
    """Return what is at the path once it is done."""
    end = time.monotonic() + WAIT
    while not done(thing := ask("GET", path, absent=True)):
        if time.monotonic() > end:
            print("Unavailable: the cloud takes too long")
            sys.exit(TEMPORARY)
        time.sleep(0.2)
    return thing


def apply(directory, request):
    """Make what the request asks for, and write what the provider answers."""
    is_machine = request["kind"] == "ReconcileMachineRequest"
    if is_machine:
        path = "/machines/" + make_machine(request)["id"]
    else:
        path = "/networks/" + request["subject"]["externalId"]
        spec = {"endpoint": request["controlPlaneEndpoint"]} if "controlPlaneEndpoint" in request else {}
        ask("PUT", path, spec)
    thing = wait(path, lambda thing: thing is None or thing["state"] in ("running", "failed"))
    if thing is None:
        print("InstanceGone: it vanished while it was being made")
        sys.exit(1)
    if thing["state"] == "failed":
        print(f"{thing.get('reason', 'CloudError')}: {thing.get('message', 'the cloud could not make it')}")
        sys.exit(1)
    if is_machine:
        outputs = {name: thing[name] for name in ("addresses", "failureDomain")} | {"providerId": thing["providerID"]}
    else:
        domains = [{"name": name, "controlPlane": True} for name in thing["failureDomains"]]
        outputs = {"controlPlaneEndpoint": thing["endpoint"], "failureDomains": domains}
    with open(os.path.join(directory, ".outputs.json"), "w", encoding="utf-8") as file:
        json.dump(outputs, file)
    os.replace(file.name, os.path.join(directory, "outputs.json"))


def destroy(_, request):
    """Remove what has the externalId, and wait until it is gone."""
    name = request["subject"]["externalId"]
    path = "/networks/" + name
    if request["kind"] == "DeleteMachineRequest":
        machine = find(name)
        if machine is None and not request.get("providerId"):
            return
        path = "/machines/" + (machine["id"] if machine else identifier(request))
    if ask("DELETE", path, absent=True) is not None:
        wait(path, lambda thing: thing is None)


if __name__ == "__main__":
    command, directory = {"apply": apply, "destroy": destroy}[sys.argv[1]], sys.argv[2]
    with open(os.path.join(directory, "input.json"), encoding="utf-8") as file:
        command(directory, json.load(file))
