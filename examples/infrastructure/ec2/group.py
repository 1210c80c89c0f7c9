# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""What a pool is made of: a launch template, and an Auto Scaling group. Both have the external_id as their name."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from network import TAG, tagged, where


def make_template(ec2: Any, external_id: str, data: dict[str, Any]) -> None:
    """Makes the version of the launch template for new instances, with a digest of the data as its description."""
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    name, version = {"LaunchTemplateName": external_id}, {"LaunchTemplateData": data, "VersionDescription": digest}
    if not templates(ec2, external_id):
        ec2.create_launch_template(**name, **version, **tagged("launch-template", external_id))
    latest = ec2.describe_launch_template_versions(**name, Versions=["$Latest"])["LaunchTemplateVersions"][0]
    if latest["VersionDescription"] != digest:
        ec2.create_launch_template_version(**name, **version)
        if not latest["DefaultVersion"]:  # bootstrap tokens are renewed all the time, and versions are limited
            ec2.delete_launch_template_versions(**name, Versions=[str(latest["VersionNumber"])])


def templates(ec2: Any, external_id: str) -> Any:
    """Returns the launch template as a list."""
    return ec2.describe_launch_templates(Filters=where("tag:" + TAG, external_id))["LaunchTemplates"]


def find(asg: Any, external_id: str) -> Any:
    """Returns the Auto Scaling group, or None."""
    groups = asg.describe_auto_scaling_groups(AutoScalingGroupNames=[external_id])["AutoScalingGroups"]
    return groups[0] if groups else None


def make(asg: Any, external_id: str, subnets: list[str], replicas: int | None, remove: Iterable[str]) -> Any:
    """Returns the Auto Scaling group, after giving it a size. Its instances only go if remove has them."""
    name, shape = {"AutoScalingGroupName": external_id}, {"VPCZoneIdentifier": ",".join(subnets)}
    size = {} if replicas is None else {"DesiredCapacity": replicas}
    group = find(asg, external_id)
    if not group:
        template = {"LaunchTemplateName": external_id, "Version": "$Latest"}
        tags = [{"Key": TAG, "Value": external_id, "PropagateAtLaunch": False}]
        most = {"MinSize": 0, "MaxSize": 10_000, "NewInstancesProtectedFromScaleIn": True}
        asg.create_auto_scaling_group(**name, **shape, **size, **most, LaunchTemplate=template, Tags=tags)
        group = find(asg, external_id)
    asg.suspend_processes(**name, ScalingProcesses=["AZRebalance"])  # it would make instances to remove others
    states = {instance["InstanceId"]: instance["LifecycleState"] for instance in group["Instances"]}
    for instance in remove:
        if instance in states and not states[instance].startswith("Terminat"):
            asg.terminate_instance_in_auto_scaling_group(InstanceId=instance, ShouldDecrementDesiredCapacity=True)
    asg.update_auto_scaling_group(**name, **shape, **size)
    return group


def trouble(asg: Any, external_id: str) -> str:
    """Returns why the group could not make an instance when it last tried, or ""."""
    last = asg.describe_scaling_activities(AutoScalingGroupName=external_id, MaxRecords=1)["Activities"]
    return last[0].get("StatusMessage", "") if last and last[0]["StatusCode"] == "Failed" else ""


def delete(ec2: Any, asg: Any, external_id: str) -> bool:
    """Deletes the group with its instances, and the launch template. It returns whether there was any."""
    group, left = find(asg, external_id), templates(ec2, external_id)
    if group and not group.get("Status"):  # it says so if it is being deleted
        asg.delete_auto_scaling_group(AutoScalingGroupName=external_id, ForceDelete=True)
    for template in left:
        ec2.delete_launch_template(LaunchTemplateId=template["LaunchTemplateId"])
    return bool(group or left)
