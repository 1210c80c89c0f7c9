# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""What the machines of a cluster share: a VPC with subnets, and the load balancer of the API server."""

import hashlib
import ipaddress
import re
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

TAG, PORT = "hookgate.dev/external-id", 6443


def where(name: str, *values: str) -> Any:
    """Returns a filter of EC2, as a list."""
    return [{"Name": name, "Values": list(values)}]


def tagged(kind: str, external_id: str, **more: str) -> Any:
    """Returns the argument that has EC2 tag a thing as it makes it."""
    tags = [{"Key": key, "Value": value} for key, value in {TAG: external_id, **more}.items()]
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]}


def make(ec2: Any, elb: Any, external_id: str, cidr: str) -> tuple[Any, dict[str, Any]]:
    """Returns the load balancer, and what machines have to know. It makes what is missing."""
    vpc, target = make_vpc(ec2, elb, external_id, cidr)
    make_gateway(ec2, external_id, vpc["VpcId"])
    subnets = make_subnets(ec2, external_id, vpc)
    group = open_port(ec2, vpc["VpcId"])
    balancer = make_balancer(elb, external_id, target, list(subnets.values()))
    return balancer, {"subnets": subnets, "securityGroup": group, "targetGroup": target}


def make_vpc(ec2: Any, elb: Any, external_id: str, cidr: str) -> tuple[Any, str]:
    """Returns the VPC, and the target group of control plane machines.

    Two processes may make two VPCs, but not two target groups of one name: its VPC counts, and deletions find both.
    """
    name, tags = name_of(external_id), [{"Key": TAG, "Value": external_id}]
    target = named(elb.describe_target_groups, "TargetGroups", name)
    mine = where("vpc-id", target["VpcId"]) if target else where("tag:" + TAG, external_id)
    vpcs = ec2.describe_vpcs(Filters=mine)["Vpcs"]
    vpc = vpcs[0] if vpcs else ec2.create_vpc(CidrBlock=cidr, **tagged("vpc", external_id))["Vpc"]
    if not target:
        made = elb.create_target_group(Name=name, Protocol="TCP", Port=PORT, VpcId=vpc["VpcId"], Tags=tags)
        target = made["TargetGroups"][0]
    ec2.modify_vpc_attribute(VpcId=vpc["VpcId"], EnableDnsHostnames={"Value": True})
    return vpc, target["TargetGroupArn"]


def make_gateway(ec2: Any, external_id: str, vpc: str) -> None:
    """Connects the VPC with the Internet. Its main route table comes and goes with it."""
    found = ec2.describe_internet_gateways(Filters=where("tag:" + TAG, external_id))["InternetGateways"]
    if not found:
        found = [ec2.create_internet_gateway(**tagged("internet-gateway", external_id))["InternetGateway"]]
    gateway = found[0]["InternetGatewayId"]
    if not found[0].get("Attachments"):
        ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    mains = where("vpc-id", vpc) + where("association.main", "true")
    table = ec2.describe_route_tables(Filters=mains)["RouteTables"][0]
    if not any(route.get("GatewayId") == gateway for route in table["Routes"]):
        ec2.create_route(RouteTableId=table["RouteTableId"], DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)


def make_subnets(ec2: Any, external_id: str, vpc: Any) -> dict[str, str]:
    """Returns the subnets by their zones, of which there are three at most."""
    mine = where("tag:" + TAG, external_id) + where("vpc-id", vpc["VpcId"])
    found = {subnet["AvailabilityZone"]: subnet for subnet in ec2.describe_subnets(Filters=mine)["Subnets"]}
    zones = ec2.describe_availability_zones(Filters=where("zone-type", "availability-zone"))["AvailabilityZones"]
    blocks = list(ipaddress.ip_network(vpc["CidrBlock"]).subnets(prefixlen_diff=4))  # one for each letter of a zone
    for zone in sorted(zone["ZoneName"] for zone in zones)[:3]:
        if zone not in found:
            place = {"AvailabilityZone": zone, "CidrBlock": str(blocks[ord(zone[-1]) - ord("a")])}
            found[zone] = ec2.create_subnet(VpcId=vpc["VpcId"], **place, **tagged("subnet", external_id))["Subnet"]
        if not found[zone]["MapPublicIpOnLaunch"]:
            ec2.modify_subnet_attribute(SubnetId=found[zone]["SubnetId"], MapPublicIpOnLaunch={"Value": True})
    return {zone: found[zone]["SubnetId"] for zone in sorted(found)}


def open_port(ec2: Any, vpc: str) -> str:
    """Returns the VPC's default security group, whose members reach each other. All reach the API server."""
    mine = where("vpc-id", vpc) + where("group-name", "default")
    group = ec2.describe_security_groups(Filters=mine)["SecurityGroups"][0]
    if not any(rule.get("FromPort") == PORT for rule in group["IpPermissions"]):
        api = {"IpProtocol": "tcp", "FromPort": PORT, "ToPort": PORT, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
        ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=[api])
    return group["GroupId"]


def make_balancer(elb: Any, external_id: str, target: str, subnets: list[str]) -> Any:
    """Returns the load balancer in front of a target group."""
    name, tags = name_of(external_id), [{"Key": TAG, "Value": external_id}]
    balancer = named(elb.describe_load_balancers, "LoadBalancers", name)
    if not balancer:
        made = elb.create_load_balancer(Name=name, Type="network", Subnets=subnets, Tags=tags)
        balancer = made["LoadBalancers"][0]
    this, group = {"LoadBalancerArn": balancer["LoadBalancerArn"]}, {"TargetGroupArn": target}
    if not elb.describe_listeners(**this)["Listeners"]:
        elb.create_listener(**this, Protocol="TCP", Port=PORT, DefaultActions=[{"Type": "forward", **group}])
    # A machine reaches the API server through the load balancer also where it runs itself, and from every zone.
    own = [{"Key": "preserve_client_ip.enabled", "Value": "false"}]
    elb.modify_target_group_attributes(**group, Attributes=own)
    across = [{"Key": "load_balancing.cross_zone.enabled", "Value": "true"}]
    elb.modify_load_balancer_attributes(**this, Attributes=across)
    return balancer


def delete(ec2: Any, elb: Any, external_id: str) -> tuple[bool, str]:
    """Deletes what there is. It returns whether there was anything, and what AWS does not let go yet."""
    mine, name, steps = where("tag:" + TAG, external_id), name_of(external_id), []
    if balancer := named(elb.describe_load_balancers, "LoadBalancers", name):
        steps.append((elb.delete_load_balancer, {"LoadBalancerArn": balancer["LoadBalancerArn"]}))
    if target := named(elb.describe_target_groups, "TargetGroups", name):
        steps.append((elb.delete_target_group, {"TargetGroupArn": target["TargetGroupArn"]}))
    for subnet in ec2.describe_subnets(Filters=mine)["Subnets"]:
        steps.append((ec2.delete_subnet, {"SubnetId": subnet["SubnetId"]}))
    for gateway in ec2.describe_internet_gateways(Filters=mine)["InternetGateways"]:
        this = {"InternetGatewayId": gateway["InternetGatewayId"]}
        for attachment in gateway["Attachments"]:
            steps.append((ec2.detach_internet_gateway, {**this, "VpcId": attachment["VpcId"]}))
        steps.append((ec2.delete_internet_gateway, this))
    for vpc in ec2.describe_vpcs(Filters=mine)["Vpcs"]:
        steps.append((ec2.delete_vpc, {"VpcId": vpc["VpcId"]}))
    try:
        for step, arguments in steps:
            step(**arguments)
    except ClientError as error:
        if not re.search("DependencyViolation|ResourceInUse|NotFound", error.response["Error"]["Code"]):
            raise
        return True, f"{error.operation_name}: {error.response['Error']['Code']}"
    return bool(steps), ""


def name_of(external_id: str) -> str:
    """Returns the name of the load balancer and its target group, which has at most 32 characters."""
    return "hookgate-" + hashlib.sha256(external_id.encode()).hexdigest()[:23]


def named(describe: Callable[..., Any], key: str, name: str) -> Any:
    """Returns what has the name, or None."""
    try:
        return describe(Names=[name])[key][0]
    except ClientError as error:
        if error.response["Error"]["Code"] in ("LoadBalancerNotFound", "TargetGroupNotFound"):
            return None
        raise
