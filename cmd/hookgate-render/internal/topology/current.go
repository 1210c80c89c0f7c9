// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// currentReader reads the objects that a Cluster has, as Cluster API's topology controller does. It has no exported
// code for it.
type currentReader struct {
	client    client.Reader
	blueprint *scope.ClusterBlueprint
	cluster   *clusterv1.Cluster
}

// read returns the current state of the Cluster, which is empty for a new one.
func (r *currentReader) read(ctx context.Context) (*scope.ClusterState, error) {
	s := &scope.ClusterState{Cluster: r.cluster, ControlPlane: &scope.ControlPlaneState{}}
	var err error
	if ref := r.cluster.Spec.InfrastructureRef; ref.IsDefined() {
		template := r.blueprint.InfrastructureClusterTemplate
		if s.InfrastructureCluster, err = r.object(ctx, template, ref, "Template"); err != nil {
			return nil, err
		}
	}
	if ref := r.cluster.Spec.ControlPlaneRef; ref.IsDefined() {
		if s.ControlPlane, err = r.controlPlane(ctx, ref); err != nil {
			return nil, err
		}
	}
	if s.MachineDeployments, err = r.machineDeployments(ctx); err != nil {
		return nil, err
	}
	s.MachinePools, err = r.machinePools(ctx)
	return s, err
}

func (r *currentReader) controlPlane(
	ctx context.Context, ref clusterv1.ContractVersionedObjectReference,
) (*scope.ControlPlaneState, error) {
	s := &scope.ControlPlaneState{}
	var err error
	if s.Object, err = r.object(ctx, r.blueprint.ControlPlane.Template, ref, "Template"); err != nil {
		return nil, err
	}
	if !r.blueprint.HasControlPlaneInfrastructureMachine() {
		return s, nil
	}
	template := infrastructureRef(s.Object)
	if s.InfrastructureMachineTemplate, err = r.object(
		ctx, r.blueprint.ControlPlane.InfrastructureMachineTemplate, template, ""); err != nil {
		return nil, err
	}
	s.MachineHealthCheck, err = r.healthCheck(ctx, s.Object.GetName())
	return s, err
}

// infrastructureRef returns the reference of a control plane to the template of its machines, which is in another place
// for each contract.
func infrastructureRef(controlPlane *unstructured.Unstructured) clusterv1.ContractVersionedObjectReference {
	ref, ok, _ := unstructured.NestedStringMap(controlPlane.Object, "spec", "machineTemplate", "spec", "infrastructureRef")
	if !ok {
		old, _, _ := unstructured.NestedMap(controlPlane.Object, "spec", "machineTemplate", "infrastructureRef")
		text := func(name string) string { s, _ := old[name].(string); return s }
		group, _, _ := strings.Cut(text("apiVersion"), "/")
		return clusterv1.ContractVersionedObjectReference{APIGroup: group, Kind: text("kind"), Name: text("name")}
	}
	return clusterv1.ContractVersionedObjectReference{APIGroup: ref["apiGroup"], Kind: ref["kind"], Name: ref["name"]}
}

func (r *currentReader) machineDeployments(ctx context.Context) (scope.MachineDeploymentsStateMap, error) {
	all := &clusterv1.MachineDeploymentList{}
	if err := r.list(ctx, all); err != nil {
		return nil, err
	}
	classes := map[string]*scope.MachineDeploymentBlueprint{}
	for _, md := range r.blueprint.Topology.Workers.MachineDeployments {
		if classes[md.Name] = r.blueprint.MachineDeployments[md.Class]; classes[md.Name] == nil {
			return nil, fmt.Errorf("the topology of %q: ClusterClass %q has no machineDeployment class %q",
				r.cluster.Name, r.blueprint.ClusterClass.Name, md.Class)
		}
	}
	states := scope.MachineDeploymentsStateMap{}
	for i := range all.Items {
		md := &all.Items[i]
		name := md.Labels[clusterv1.ClusterTopologyMachineDeploymentNameLabel]
		if name == "" || states[name] != nil {
			return nil, fmt.Errorf("MachineDeployment %q: its label %s is missing, or another "+
				"MachineDeployment has the same value", md.Name,
				clusterv1.ClusterTopologyMachineDeploymentNameLabel)
		}
		s := &scope.MachineDeploymentState{Object: md}
		states[name] = s
		class := classes[name]
		if class == nil {
			class = &scope.MachineDeploymentBlueprint{}
		}
		if md.DeletionTimestamp.IsZero() {
			var err error
			if s.BootstrapTemplate, err = r.object(
				ctx, class.BootstrapTemplate, md.Spec.Template.Spec.Bootstrap.ConfigRef, ""); err != nil {
				return nil, err
			}
			if s.InfrastructureMachineTemplate, err = r.object(
				ctx, class.InfrastructureMachineTemplate, md.Spec.Template.Spec.InfrastructureRef, ""); err != nil {
				return nil, err
			}
		}
		var err error
		if s.MachineHealthCheck, err = r.healthCheck(ctx, md.Name); err != nil {
			return nil, err
		}
	}
	return states, nil
}

func (r *currentReader) machinePools(ctx context.Context) (scope.MachinePoolsStateMap, error) {
	all := &clusterv1.MachinePoolList{}
	if err := r.list(ctx, all); err != nil {
		return nil, err
	}
	classes := map[string]*scope.MachinePoolBlueprint{}
	for _, mp := range r.blueprint.Topology.Workers.MachinePools {
		if classes[mp.Name] = r.blueprint.MachinePools[mp.Class]; classes[mp.Name] == nil {
			return nil, fmt.Errorf("the topology of %q: ClusterClass %q has no machinePool class %q",
				r.cluster.Name, r.blueprint.ClusterClass.Name, mp.Class)
		}
	}
	states := scope.MachinePoolsStateMap{}
	for i := range all.Items {
		mp := &all.Items[i]
		name := mp.Labels[clusterv1.ClusterTopologyMachinePoolNameLabel]
		if name == "" || states[name] != nil {
			return nil, fmt.Errorf("MachinePool %q: its label %s is missing, or another "+
				"MachinePool has the same value", mp.Name,
				clusterv1.ClusterTopologyMachinePoolNameLabel)
		}
		class := classes[name]
		if class == nil {
			class = &scope.MachinePoolBlueprint{}
		}
		s := &scope.MachinePoolState{Object: mp}
		states[name] = s
		var err error
		if s.BootstrapObject, err = r.object(
			ctx, class.BootstrapTemplate, mp.Spec.Template.Spec.Bootstrap.ConfigRef, "Template"); err != nil {
			return nil, err
		}
		if s.InfrastructureMachinePoolObject, err = r.object(
			ctx, class.InfrastructureMachinePoolTemplate, mp.Spec.Template.Spec.InfrastructureRef, "Template"); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// list lists the objects of the Cluster's topology.
func (r *currentReader) list(ctx context.Context, into client.ObjectList) error {
	return r.client.List(ctx, into, client.InNamespace(r.cluster.Namespace), client.MatchingLabels{
		clusterv1.ClusterNameLabel: r.cluster.Name, clusterv1.ClusterTopologyOwnedLabel: "",
	})
}

// object returns a referenced object, in the version of the template of the ClusterClass that it comes from. A kind
// that the ClusterClass does not have any more has the newest version. suffix is what the kind of the template has
// besides.
func (r *currentReader) object(
	ctx context.Context, template *unstructured.Unstructured, ref clusterv1.ContractVersionedObjectReference,
	suffix string,
) (*unstructured.Unstructured, error) {
	var o *unstructured.Unstructured
	var err error
	if template != nil && template.GroupVersionKind().Group == ref.APIGroup &&
		strings.TrimSuffix(template.GetKind(), suffix) == ref.Kind {
		o, err = external.Get(ctx, r.client, &corev1.ObjectReference{
			APIVersion: template.GetAPIVersion(), Kind: ref.Kind, Namespace: r.cluster.Namespace, Name: ref.Name,
		})
	} else {
		o, err = external.GetObjectFromContractVersionedRef(ctx, r.client, ref, r.cluster.Namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", ref.Kind, ref.Name, err)
	}
	if _, ok := o.GetLabels()[clusterv1.ClusterTopologyOwnedLabel]; !ok {
		return nil, fmt.Errorf("%s %q is not owned by the topology: its label %s is missing", ref.Kind, ref.Name,
			clusterv1.ClusterTopologyOwnedLabel)
	}
	return o, nil
}

// healthCheck returns the MachineHealthCheck of a name; nil if there is none.
func (r *currentReader) healthCheck(ctx context.Context, name string) (*clusterv1.MachineHealthCheck, error) {
	mhc := &clusterv1.MachineHealthCheck{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: r.cluster.Namespace, Name: name}, mhc)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return mhc, err
}
