# Copyright The Hookgate Authors.
# SPDX-License-Identifier: Apache-2.0

"""An infrastructure provider for Amazon EC2, over gRPC: networks, machines, and pools that are Auto Scaling groups.

Everything that it makes has the external_id of its subject as a tag, and in its name where names are unique, so it
keeps no state, may be killed at any moment, and several of it may run. CERT_DIR has tls.crt and tls.key.
"""

import base64
import functools
import json
import re
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from hookgate import Extension, Failure, load
from hookgate.hooks.v1alpha1 import JSON
from hookgate.infrastructure import v1alpha1 as infrastructure

import group
import instance
import network
from network import tagged

CIDR, REVISION, VERSION = "10.0.0.0/16", "hookgate.dev/revision", "hookgate.dev/version"
SECRETS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
CAPACITIES = {  # by the type of the instance
    "t3.large": ("2", "8Gi", "amd64"),
    "m7i.xlarge": ("4", "16Gi", "amd64"),
    "m7g.xlarge": ("4", "16Gi", "arm64"),
}
REASONS = {  # by the codes of AWS
    "InsufficientCapacity": r"Insufficient\w*Capacity",
    "QuotaExceeded": r"(?!Request)\w*LimitExceeded|TooMany(LoadBalancers|TargetGroups)",
    "CredentialsInvalid": r"(AuthFailure|InvalidClientToken|Signature|Unauthorized|AccessDenied)[\w.]*|\w*Expired\w*",
    "InvalidParameters": r"InvalidAMIID[.]\w+|Invalid(Vpc|Subnet)[.]Range|MissingParameter|(InvalidParameter|Unsupported)\w*",
}

extension, session, opening = Extension(), boto3.Session(), threading.Lock()
locks = [threading.Lock() for _ in range(64)]


def handler(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Registers a function. What AWS refuses to make, for a known reason, is Failed; any other error is a Failure.

    Calls about one subject wait for each other, because a caller may have given up on one that goes on.
    """

    @extension.handler(timeout=30)
    @functools.wraps(function)
    def handle(request: Any) -> Any:
        try:
            with locks[zlib.crc32(request.subject.external_id.encode()) % len(locks)]:
                return function(request)
        except ClientError as error:
            reason, message = refusal(error, request.subject)
            makes = request.DESCRIPTOR.name in ("ReconcileClusterRequest", "ReconcileMachineRequest")
            if not reason or not makes or getattr(request, "provider_id", ""):
                raise Failure(message) from None
            failed = {"phase": infrastructure.PHASE_FAILED, "reason": reason, "message": message}
            return function.__annotations__["return"](**failed)
        except (BotoCoreError, ResponseParserError) as error:  # its text may have parts of the request
            raise Failure(f"AWS cannot be called: {type(error).__name__}") from None

    return handle


@extension.handler
def discover(_: infrastructure.DiscoverInfrastructureRequest) -> infrastructure.DiscoverInfrastructureResponse:
    """Announces the parameters, and what machines have. The package adds the other handlers."""
    cidr = {"type": "string", "default": CIDR, "description": "The addresses of the VPC: a block of /16 to /24."}
    kind = {"type": "string", "default": instance.TYPE, "description": "The type of the instance."}
    image = {"type": "string", "pattern": "^ami-", "description": "An AMI with kubeadm, and cloud-init or Ignition."}
    machine = {"type": "object", "properties": {"instanceType": kind, "imageId": image}, "required": ["imageId"]}
    answer = infrastructure.DiscoverInfrastructureResponse(
        provider_id_prefix=instance.PREFIX,
        cluster_parameters=encode({"type": "object", "properties": {"cidr": cidr}}),
        machine_parameters=encode(machine),
        machine_pool_parameters=encode(machine),
    )
    for name, (cpu, memory, architecture) in CAPACITIES.items():
        capacity = {"capacity": {"cpu": cpu, "memory": memory}, "architecture": architecture}
        answer.machine_capacities.add(parameters=encode({"instanceType": name}), operating_system="linux", **capacity)
    return answer


@handler
def reconcile_cluster(request: infrastructure.ReconcileClusterRequest) -> infrastructure.ReconcileClusterResponse:
    """Makes a VPC with subnets in three zones, and a load balancer, which is the endpoint of the API server."""
    subject, name = request.subject, request.subject.external_id
    cidr = json.loads(subject.parameters.raw or b"{}").get("cidr", CIDR)
    balancer, outputs = network.make(aws("ec2", subject), aws("elbv2", subject), name, cidr)
    endpoint = request.control_plane_endpoint
    if not request.HasField("control_plane_endpoint"):
        endpoint = infrastructure.Endpoint(host=balancer["DNSName"], port=network.PORT)
    active = balancer["State"]["Code"].startswith("active")
    return infrastructure.ReconcileClusterResponse(
        phase=infrastructure.PHASE_READY if active else infrastructure.PHASE_PROVISIONING,
        control_plane_endpoint=endpoint,
        failure_domains=[infrastructure.FailureDomain(name=zone, control_plane=True) for zone in outputs["subnets"]],
        outputs=encode(outputs),
    )


@handler
def delete_cluster(request: infrastructure.DeleteClusterRequest) -> infrastructure.DeleteClusterResponse:
    """Deletes the load balancer and the network. They are gone once nothing has the name or the tag."""
    subject = request.subject
    left, message = network.delete(aws("ec2", subject), aws("elbv2", subject), subject.external_id)
    return infrastructure.DeleteClusterResponse(state=deletion(left), message=message)


@handler
def reconcile_machine(request: infrastructure.ReconcileMachineRequest) -> infrastructure.ReconcileMachineResponse:
    """Makes an instance, or looks at the one that was recorded: that one is never made again."""
    subject, name, ec2 = request.subject, request.subject.external_id, aws("ec2", request.subject)
    found = instance.recorded(ec2, request.provider_id) if request.provider_id else instance.of(ec2, name)
    if not found and request.provider_id:
        gone = {"phase": infrastructure.PHASE_FAILED, "reason": "InstanceGone", "message": "EC2 has no such instance"}
        return infrastructure.ReconcileMachineResponse(**gone)
    if not found:
        subnets = instance.subnets(subject, *filter(None, [request.failure_domain]))
        place = {"SubnetId": subnets[zlib.crc32(name.encode()) % len(subnets)]}
        once = {"MinCount": 1, "MaxCount": 1, "ClientToken": name, **tagged("instance", name, Name=subject.name)}
        data = {"UserData": instance.user_data(request.bootstrap)}
        found = ec2.run_instances(**instance.described(subject), **place, **data, **once)["Instances"]
    one = min(found, key=instance.ended)
    if request.control_plane and one["State"]["Name"] == "running":
        target, targets = load(subject, "clusterOutputs")["targetGroup"], [{"Id": one["InstanceId"]}]
        aws("elbv2", subject).register_targets(TargetGroupArn=target, Targets=targets)
    message = one.get("StateReason", {}).get("Message", "")
    return infrastructure.ReconcileMachineResponse(**instance.shown(one), message=message)


@handler
def delete_machine(request: infrastructure.DeleteMachineRequest) -> infrastructure.DeleteMachineResponse:
    """Terminates the instance, also if it was recorded and has lost its tag."""
    ec2 = aws("ec2", request.subject)
    found = instance.of(ec2, request.subject.external_id) + instance.recorded(ec2, request.provider_id)
    return infrastructure.DeleteMachineResponse(state=deletion(instance.terminate(ec2, found)))


@handler
def reconcile_machine_pool(
    request: infrastructure.ReconcileMachinePoolRequest,
) -> infrastructure.ReconcileMachinePoolResponse:
    """Makes an Auto Scaling group, removes the instances that are named, and lists all."""
    subject, name, ec2 = request.subject, request.subject.external_id, aws("ec2", request.subject)
    asg = aws("autoscaling", subject)
    tags = tagged("instance", name, Name=subject.name, **{REVISION: request.revision, VERSION: request.version})
    data = base64.b64encode(instance.user_data(request.bootstrap)).decode()
    group.make_template(ec2, name, {**instance.described(subject), **tags, "UserData": data})
    replicas = request.replicas if request.HasField("replicas") else None
    subnets, remove = instance.subnets(subject, *request.failure_domains), map(instance.id_of, request.remove)
    made = group.make(asg, name, subnets, replicas, remove)

    members = []
    for one in instance.of(ec2, name):
        if not instance.ended(one):
            known = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
            made_of = {"revision": known.get(REVISION), "version": known.get(VERSION)}
            members.append(infrastructure.Instance(name=one["InstanceId"], **made_of, **instance.shown(one)))
    complete = replicas in (None, len(members)) and all(m.phase == infrastructure.PHASE_READY for m in members)
    phase = infrastructure.PHASE_READY if complete else infrastructure.PHASE_PROVISIONING
    message = "" if complete else group.trouble(asg, name)
    return infrastructure.ReconcileMachinePoolResponse(
        phase=infrastructure.PHASE_FAILED if message else phase,
        reason="LaunchFailed" if message else "",
        message=message,
        provider_id=made["AutoScalingGroupARN"],
        instances=members,
        instance_count=len(members),
    )


@handler
def delete_machine_pool(request: infrastructure.DeleteMachinePoolRequest) -> infrastructure.DeleteMachinePoolResponse:
    """Deletes the group with its instances, also those that it has left behind."""
    subject, name, ec2 = request.subject, request.subject.external_id, aws("ec2", request.subject)
    found = group.delete(ec2, aws("autoscaling", subject), name)
    left = instance.terminate(ec2, instance.of(ec2, name))
    return infrastructure.DeleteMachinePoolResponse(state=deletion(found or left))


def aws(service: str, subject: infrastructure.Subject) -> Any:
    """Returns a client with the credentials of the subject. Without a region, that of the environment counts."""
    region, key, secret, token = (subject.credentials.get(name, "").strip() or None for name in ("region", *SECRETS))
    if not key or not secret:  # boto3 would look for others, such as the provider's own
        raise Failure("the credentials lack aws_access_key_id or aws_secret_access_key")
    return client(service, region, key, secret, token)


@functools.lru_cache(maxsize=256)
def client(service: str, region: str | None, key: str, secret: str, token: str | None) -> Any:
    """Returns a client, which threads may share. A session may not be shared."""
    config = Config(connect_timeout=5, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 2})
    login = {"aws_access_key_id": key, "aws_secret_access_key": secret, "aws_session_token": token}
    with opening:
        return session.client(service, region_name=region, config=config, **login)


def refusal(error: ClientError, subject: infrastructure.Subject) -> tuple[str, str]:
    """Returns the reason for which AWS refuses a call, or "", and a text without credentials."""
    code, text = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    reason = next((reason for reason, codes in REASONS.items() if re.fullmatch(codes, code)), "")
    if reason == "CredentialsInvalid":  # AWS adds the request, or an encoded text that differs each time
        return reason, f"{error.operation_name}: {code}"
    for name in SECRETS:
        if value := subject.credentials.get(name, "").strip():
            text = text.replace(value, "***")
    return reason, f"{error.operation_name}: {code}: {text}"


def encode(value: Any) -> JSON:
    """Returns a value as JSON."""
    return JSON(raw=json.dumps(value).encode())


def deletion(left: bool) -> "infrastructure.DeletionState.ValueType":
    """Returns the state of a deletion that has found something, or nothing."""
    return infrastructure.DELETION_STATE_DELETING if left else infrastructure.DELETION_STATE_GONE


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python main.py ADDRESS CERT_DIR")
    extension.serve(sys.argv[1], tls_cert=sys.argv[2] + "/tls.crt", tls_key=sys.argv[2] + "/tls.key")
