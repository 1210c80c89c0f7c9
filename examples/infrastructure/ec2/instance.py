# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""What a machine is made of: an instance. EC2 still shows a terminated one for about an hour."""

import gzip
from typing import Any

from hookgate import Failure, load
from hookgate.infrastructure import v1alpha1 as infrastructure

from network import TAG, where

PREFIX, TYPE = "aws:///", "t3.large"
PHASES = {"pending": infrastructure.PHASE_PROVISIONING, "running": infrastructure.PHASE_READY}
ENDED = ("shutting-down", "terminated")
ADDRESSES = {"InternalIP": "PrivateIpAddress", "ExternalIP": "PublicIpAddress", "InternalDNS": "PrivateDnsName"}


def of(ec2: Any, external_id: str) -> list[Any]:
    """Returns the instances of a machine or a pool."""
    return _pages(ec2, where("tag:" + TAG, external_id))


def recorded(ec2: Any, provider_id: str) -> list[Any]:
    """Returns the instance with a provider ID, as a list. None of them is an error to EC2."""
    return _pages(ec2, where("instance-id", id_of(provider_id))) if provider_id else []


def _pages(ec2: Any, filters: Any) -> list[Any]:
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    found = (instance for page in pages for reservation in page["Reservations"] for instance in reservation["Instances"])
    return sorted(found, key=lambda instance: instance["InstanceId"])


def ended(instance: Any) -> bool:
    """Reports whether an instance will never run again."""
    return instance["State"]["Name"] in ENDED


def terminate(ec2: Any, found: list[Any]) -> bool:
    """Terminates instances, and reports whether there are any that have not been terminated yet."""
    if alive := [instance["InstanceId"] for instance in found if not ended(instance)]:
        ec2.terminate_instances(InstanceIds=alive)
    return any(instance["State"]["Name"] != "terminated" for instance in found)


def shown(instance: Any) -> dict[str, Any]:
    """Returns the fields of an answer that say what an instance is."""
    name, zone = instance["State"]["Name"], instance["Placement"]["AvailabilityZone"]
    reason = "" if name in PHASES else "InstanceGone" if name in ENDED else "InstanceStopped"
    addresses = [(kind, instance.get(member)) for kind, member in ADDRESSES.items()]
    return {
        "phase": PHASES.get(name, infrastructure.PHASE_FAILED),
        "reason": reason,
        "provider_id": f"{PREFIX}{zone}/{instance['InstanceId']}",
        "failure_domain": zone,
        "addresses": [infrastructure.MachineAddress(type=kind, address=text) for kind, text in addresses if text],
    }


def id_of(provider_id: str) -> str:
    """Returns the ID of an instance, which ends its provider ID."""
    return provider_id.rpartition("/")[2]


def described(subject: infrastructure.Subject) -> dict[str, Any]:
    """Returns what an instance and a launch template have in common."""
    parameters, outputs = load(subject, "parameters"), load(subject, "clusterOutputs")
    return {
        "ImageId": parameters.get("imageId", ""),
        "InstanceType": parameters.get("instanceType", TYPE),
        "SecurityGroupIds": [outputs["securityGroup"]],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
    }


def subnets(subject: infrastructure.Subject, *zones: str) -> list[str]:
    """Returns the subnets of these failure domains, or of all."""
    known = load(subject, "clusterOutputs")["subnets"]
    if unknown := set(zones) - set(known):
        raise Failure(f"the cluster has no failure domain {min(unknown)}")
    return [known[zone] for zone in zones or sorted(known)]


def user_data(bootstrap: infrastructure.Bootstrap) -> bytes:
    """Returns bootstrap data. EC2 takes 16 KiB, and a control plane's is larger; cloud-init reads it compressed."""
    return gzip.compress(bootstrap.data, mtime=0) if bootstrap.format == "cloud-config" else bootstrap.data
