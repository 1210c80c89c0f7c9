// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inEC2 is the provider in examples/infrastructure/ec2.
const inEC2 = "ec2"

// ec2Objects are a Cluster in the name of an identity, with two machines of a MachineDeployment and a pool. Nobody makes a
// control plane: the instances are not there, and nothing would join it.
const ec2Objects = `
apiVersion: v1
kind: Secret
metadata: {name: team-a, namespace: hookgate-system}
stringData: {region: us-east-1, aws_access_key_id: AKIAHOOKGATEEXAMPLE, aws_secret_access_key: secret-of-team-a}
---
apiVersion: infrastructure.hookgate.dev/v1alpha1
kind: HookgateClusterIdentity
metadata: {name: team-a}
spec: {credentialsRef: {name: team-a}, allowedNamespaces: {names: [e2e]}}
---
apiVersion: v1
kind: Secret
metadata: {name: boot, namespace: e2e}
stringData: {value: "#cloud-config", format: cloud-config}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: a, namespace: e2e}
spec:
  infrastructureRef: {apiGroup: infrastructure.hookgate.dev, kind: HookgateCluster, name: a}
---
apiVersion: infrastructure.hookgate.dev/v1alpha1
kind: HookgateCluster
metadata: {name: a, namespace: e2e}
spec: {infrastructureClassName: ec2, identityRef: {name: team-a}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: a-md-0, namespace: e2e}
spec:
  clusterName: a
  replicas: 2
  selector: {}
  template:
    spec:
      clusterName: a
      version: v1.35.5
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiGroup: infrastructure.hookgate.dev, kind: HookgateMachineTemplate, name: a-md-0}
---
apiVersion: infrastructure.hookgate.dev/v1alpha1
kind: HookgateMachineTemplate
metadata: {name: a-md-0, namespace: e2e}
spec: {template: {spec: {parameters: {imageId: ami-12c6146b, instanceType: t3.medium}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: a-mp-0, namespace: e2e}
spec:
  clusterName: a
  replicas: 2
  template:
    spec:
      clusterName: a
      version: v1.35.5
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiGroup: infrastructure.hookgate.dev, kind: HookgateMachinePool, name: a-mp-0}
---
apiVersion: infrastructure.hookgate.dev/v1alpha1
kind: HookgateMachinePool
metadata: {name: a-mp-0, namespace: e2e}
spec: {parameters: {imageId: ami-12c6146b}}
`

// ec2Counts prints what moto has: instances that run, Auto Scaling groups, and VPCs but the default one.
const ec2Counts = `
import boto3, sys
login = dict(endpoint_url=sys.argv[1], region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")
ec2, groups = boto3.client("ec2", **login), boto3.client("autoscaling", **login)
states = [i["State"]["Name"] for r in ec2.describe_instances()["Reservations"] for i in r["Instances"]]
print(states.count("running"), len(groups.describe_auto_scaling_groups()["AutoScalingGroups"]),
      len([v for v in ec2.describe_vpcs()["Vpcs"] if not v["IsDefault"]]))
`

// TestEC2 makes a Cluster with the example for Amazon EC2, against moto, which answers EC2's API, in the name of an
// identity: machines, and a pool by an Auto Scaling group, which is scaled. Then everything is deleted.
func TestEC2(t *testing.T) {
	w := begin(t, false)
	example, err := filepath.Abs("../../examples/infrastructure/ec2")
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	moto := "http://" + loopback(port)
	w.launch("moto", filepath.Join(example, "build", "test", "bin", "moto_server"), "-H", "127.0.0.1", "-p", strconv.Itoa(port))
	w.env = append(w.env, "AWS_ENDPOINT_URL="+moto)
	has := func(instances, groups, networks int) func() (string, bool) {
		return func() (string, bool) {
			out, err := exec.CommandContext(w.ctx, filepath.Join(example, "build", "venv", "bin", "python"), "-c", ec2Counts, moto).CombinedOutput()
			saw := strings.TrimSpace(string(out))
			return fmt.Sprint(saw, " ", err), err == nil && saw == fmt.Sprint(instances, groups, networks)
		}
	}
	w.eventually("moto answers", has(0, 0, 0))
	w.startProvidersOf("", inEC2)
	for _, o := range decode(t, []byte(ec2Objects)) {
		w.create(o)
	}
	cluster := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, "a")}
	w.eventually("the machines and the pool are ready", func() (string, bool) {
		list := &clusterv1.MachineList{}
		if err := w.List(w.ctx, list, client.InNamespace(namespace), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: "a-md-0"}); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			if m := &list.Items[i]; !strings.HasPrefix(m.Spec.ProviderID, "aws:///us-east-1") || len(m.Status.Addresses) == 0 {
				return fmt.Sprintf("%s: %q, %v", m.Name, m.Spec.ProviderID, m.Status.Addresses), false
			}
		}
		if len(list.Items) != 2 {
			return fmt.Sprintf("%d Machines", len(list.Items)), false
		}
		return w.conditionOf("HookgateMachinePool", namespace, "a-mp-0", "Ready")
	})
	if err := w.Get(w.ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil || len(cluster.Status.FailureDomains) != 3 ||
		!strings.HasSuffix(cluster.Spec.ControlPlaneEndpoint.Host, ".amazonaws.com") {
		t.Errorf("%v: failure domains %v, endpoint %v", err, cluster.Status.FailureDomains, cluster.Spec.ControlPlaneEndpoint)
	}
	w.eventually("EC2 has four instances", has(4, 1, 1))
	w.patch("MachinePool", "a-mp-0", int64(3), "spec", "replicas")
	w.eventually("EC2 has one more instance of the group", has(5, 1, 1))
	if err := w.Delete(w.ctx, cluster); err != nil {
		t.Fatal(err)
	}
	w.eventuallyWithin(stepPatience, "the Cluster is gone", func() (string, bool) {
		err := w.Get(w.ctx, client.ObjectKeyFromObject(cluster), &clusterv1.Cluster{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	w.eventually("EC2 is empty", has(0, 0, 0))
	events := &corev1.EventList{}
	if err := w.List(w.ctx, events, client.InNamespace(metav1.NamespaceAll)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(fmt.Sprint(events), "secret-of-team-a") || strings.Contains(logsOf(w.logs), "secret-of-team-a") {
		t.Error("the credentials are in an event or a log")
	}
	w.calm()
}
