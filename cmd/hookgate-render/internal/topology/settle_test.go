// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
)

// An upgrade is taken to its end, but for what annotations of the topology defer; the current state does not change.
func TestSettle(t *testing.T) {
	topology := &clusterv1.Topology{Version: "v2"}
	current := &scope.ClusterState{
		Cluster: &clusterv1.Cluster{}, MachineDeployments: scope.MachineDeploymentsStateMap{},
		MachinePools: scope.MachinePoolsStateMap{},
		ControlPlane: &scope.ControlPlaneState{Object: &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"version": "v1"}, "status": map[string]any{"version": "v1"},
		}}},
	}
	current.Cluster.Annotations = map[string]string{runtimev1.PendingHooksAnnotation: "AfterClusterUpgrade"}
	for _, md := range []struct{ name, annotation string }{
		{"first", ""}, {"deferred", clusterv1.ClusterTopologyDeferUpgradeAnnotation}, {"third", ""},
		{"holding", clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation}, {"held", ""},
	} {
		x := clusterv1.MachineDeploymentTopology{Name: md.name}
		if md.annotation != "" {
			x.Metadata.Annotations = map[string]string{md.annotation: ""}
		}
		topology.Workers.MachineDeployments = append(topology.Workers.MachineDeployments, x)
		topology.Workers.MachinePools = append(topology.Workers.MachinePools,
			clusterv1.MachinePoolTopology{Name: md.name, Metadata: x.Metadata})
		o, pool := &clusterv1.MachineDeployment{}, &clusterv1.MachinePool{}
		o.Spec.Template.Spec.Version, pool.Spec.Template.Spec.Version = "v1", "v1"
		current.MachineDeployments[md.name] = &scope.MachineDeploymentState{Object: o}
		current.MachinePools[md.name] = &scope.MachinePoolState{Object: pool}
	}
	settled, err := settle(current, topology)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"first": "v2", "deferred": "v1", "third": "v2", "holding": "v1", "held": "v1"} {
		md := settled.MachineDeployments[name].Object.Spec.Template.Spec.Version
		mp := settled.MachinePools[name].Object.Spec.Template.Spec.Version
		if md != want || mp != want {
			t.Errorf("%s: the MachineDeployment has %s and the MachinePool %s, want %s", name, md, mp, want)
		}
		if was := current.MachineDeployments[name].Object.Spec.Template.Spec.Version; was != "v1" {
			t.Errorf("%s: the current state has changed to %s", name, was)
		}
	}
	if got := fmt.Sprint(settled.ControlPlane.Object.Object); got != "map[spec:map[version:v2] status:map[version:v2]]" {
		t.Errorf("the control plane is %s", got)
	}
	if len(settled.Cluster.Annotations) != 0 || len(current.Cluster.Annotations) != 1 {
		t.Errorf("annotations: %v, and of the current state %v", settled.Cluster.Annotations, current.Cluster.Annotations)
	}
}
