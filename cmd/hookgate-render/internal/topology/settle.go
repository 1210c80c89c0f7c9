// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
)

// settle makes of a copy of the current state one in which every upgrade of Kubernetes has come to its end. Cluster API
// upgrades the control plane first, in steps, and calls lifecycle hooks between them; a render shows what it leads to.
// What a topology defers keeps its version.
func settle(current *scope.ClusterState, topology *clusterv1.Topology) (*scope.ClusterState, error) {
	s := &scope.ClusterState{
		Cluster: current.Cluster.DeepCopy(), InfrastructureCluster: current.InfrastructureCluster,
		ControlPlane:       &scope.ControlPlaneState{},
		MachineDeployments: scope.MachineDeploymentsStateMap{}, MachinePools: scope.MachinePoolsStateMap{},
	}
	delete(s.Cluster.Annotations, runtimev1.PendingHooksAnnotation)
	*s.ControlPlane = *current.ControlPlane
	if o := s.ControlPlane.Object; o != nil {
		o = o.DeepCopy()
		s.ControlPlane.Object = o
		if err := unstructured.SetNestedField(o.Object, topology.Version, "spec", "version"); err != nil {
			return nil, err
		}
		if v, _, _ := unstructured.NestedString(o.Object, "status", "version"); v != "" {
			if err := unstructured.SetNestedField(o.Object, topology.Version, "status", "version"); err != nil {
				return nil, err
			}
		}
	}
	deferred := deferredMachineDeployments(topology)
	for name, md := range current.MachineDeployments {
		settled := *md
		settled.Object = md.Object.DeepCopy()
		if !deferred[name] {
			settled.Object.Spec.Template.Spec.Version = topology.Version
		}
		s.MachineDeployments[name] = &settled
	}
	deferred = deferredMachinePools(topology)
	for name, mp := range current.MachinePools {
		settled := *mp
		settled.Object = mp.Object.DeepCopy()
		settled.Object.Status.NodeRefs = nil // they would be asked for their versions
		if !deferred[name] {
			settled.Object.Spec.Template.Spec.Version = topology.Version
		}
		s.MachinePools[name] = &settled
	}
	return s, nil
}

// deferredMachineDeployments returns the names of those that annotations of the topology keep at their version.
func deferredMachineDeployments(topology *clusterv1.Topology) map[string]bool {
	deferred, held := map[string]bool{}, false
	for i := range topology.Workers.MachineDeployments {
		md := &topology.Workers.MachineDeployments[i]
		held = defers(md.Metadata.Annotations, deferred, md.Name, held)
	}
	return deferred
}

// deferredMachinePools is deferredMachineDeployments for MachinePools.
func deferredMachinePools(topology *clusterv1.Topology) map[string]bool {
	deferred, held := map[string]bool{}, false
	for i := range topology.Workers.MachinePools {
		mp := &topology.Workers.MachinePools[i]
		held = defers(mp.Metadata.Annotations, deferred, mp.Name, held)
	}
	return deferred
}

// defers notes whether annotations defer the upgrade of a name, and returns whether those behind it are held.
func defers(annotations map[string]string, deferred map[string]bool, name string, held bool) bool {
	_, holds := annotations[clusterv1.ClusterTopologyHoldUpgradeSequenceAnnotation]
	_, defers := annotations[clusterv1.ClusterTopologyDeferUpgradeAnnotation]
	held = held || holds
	deferred[name] = held || defers
	return held
}
