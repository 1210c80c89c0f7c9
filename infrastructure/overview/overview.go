// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/status"
)

// Objects are the objects of the provider, and the MachinePools of Cluster API, which have the sizes of pools. Nothing
// of them is changed.
type Objects struct {
	Clusters     []infrav1.HookgateCluster
	Machines     []infrav1.HookgateMachine
	Pools        []infrav1.HookgateMachinePool
	MachinePools []clusterv1.MachinePool
}

// Read reads the objects, whose kinds the scheme of the reader must know. There may be no MachinePools in a cluster.
func Read(ctx context.Context, reader client.Reader, options ...client.ListOption) (*Objects, error) {
	clusters, machines := &infrav1.HookgateClusterList{}, &infrav1.HookgateMachineList{}
	pools, machinePools := &infrav1.HookgateMachinePoolList{}, &clusterv1.MachinePoolList{}
	for _, l := range []struct {
		kind string
		list client.ObjectList
	}{
		{"HookgateClusters", clusters}, {"HookgateMachines", machines}, {"HookgateMachinePools", pools},
		{"MachinePools", machinePools},
	} {
		err := reader.List(ctx, l.list, options...)
		if meta.IsNoMatchError(err) && l.list == client.ObjectList(machinePools) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", l.kind, err)
		}
	}
	return &Objects{clusters.Items, machines.Items, pools.Items, machinePools.Items}, nil
}

// Summarize reads the objects, and says how they are now.
func Summarize(
	ctx context.Context, reader client.Reader, options ...client.ListOption,
) (*status.Infrastructure, error) {
	objects, err := Read(ctx, reader, options...)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the infrastructure provider hookgate is not installed in the cluster: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return objects.Summary(time.Now()), nil
}

// count is how many instances there are, and how many objects.
type count struct{ instances, objects int }

func (c *count) add(m *infrav1.HookgateMachine) {
	c.objects++
	if exists(m) {
		c.instances++
	}
}

// exists reports whether a machine exists, as far as the extension has said.
func exists(m *infrav1.HookgateMachine) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, infrav1.ReadyCondition)
	return m.Spec.ProviderID != "" && (ready == nil || ready.Reason != infrav1.InstanceGoneReason)
}

// Summary says how the objects are at a time.
func (o *Objects) Summary(now time.Time) *status.Infrastructure {
	s := &status.Infrastructure{
		Now: now, Clusters: make([]status.InfrastructureObject, 0, len(o.Clusters)),
		Machines: make([]status.InfrastructureObject, 0, len(o.Machines)),
		Pools:    make([]status.InfrastructureObject, 0, len(o.Pools)),
	}
	classes := map[types.NamespacedName]string{} // by the Cluster
	for i := range o.Clusters {
		c := &o.Clusters[i]
		name := types.NamespacedName{Namespace: c.Namespace, Name: clusterapi.ClusterName(c)}
		classes[name] = c.Spec.InfrastructureClassName
	}
	ofCluster, ofPool := map[types.NamespacedName]*count{}, map[types.NamespacedName]*count{}
	for i := range o.Machines {
		m := &o.Machines[i]
		counted(ofCluster, m.Namespace, clusterapi.ClusterName(m)).add(m)
		if pool := clusterapi.OwnerOf(m, infrav1.GroupVersion.Group, infrav1.HookgateMachinePoolKind); pool != "" {
			counted(ofPool, m.Namespace, pool).add(m)
		}
		row := describe(m, classes)
		row.ProviderID, row.Objects = m.Spec.ProviderID, 1
		if exists(m) {
			row.Instances = 1
		}
		s.Machines = append(s.Machines, row)
	}
	wanted := map[types.NamespacedName]int{}
	for i := range o.MachinePools {
		p := &o.MachinePools[i]
		if clusterapi.DecidesReplicas(p) && p.DeletionTimestamp.IsZero() {
			wanted[client.ObjectKeyFromObject(p)] = int(ptr.Deref(p.Spec.Replicas, 1))
		}
	}
	for i := range o.Pools {
		p := &o.Pools[i]
		row := describe(p, classes)
		row.ProviderID = p.Spec.ProviderID
		row.Instances, row.Objects = int(ptr.Deref(p.Status.Replicas, 0)), len(p.Spec.ProviderIDList)
		if p.Spec.InstanceManagement == infrav1.InstanceManagementGroup { // none of them is a machine
			c := counted(ofCluster, p.Namespace, row.Cluster)
			c.instances, c.objects = c.instances+row.Instances, c.objects+row.Objects
		} else {
			row.Objects = counted(ofPool, p.Namespace, p.Name).objects
		}
		owner := clusterapi.OwnerOf(p, clusterv1.GroupVersion.Group, "MachinePool")
		if n, ok := wanted[types.NamespacedName{Namespace: p.Namespace, Name: owner}]; ok {
			row.Wanted = &n
		}
		s.Pools = append(s.Pools, row)
	}
	for i := range o.Clusters {
		c := &o.Clusters[i]
		row := describe(c, classes)
		n := counted(ofCluster, c.Namespace, row.Cluster)
		row.Instances, row.Objects = n.instances, n.objects
		s.Clusters = append(s.Clusters, row)
	}
	for _, rows := range [][]status.InfrastructureObject{s.Clusters, s.Machines, s.Pools} {
		slices.SortFunc(rows, func(a, b status.InfrastructureObject) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
	}
	return s
}

func counted(all map[types.NamespacedName]*count, namespace, name string) *count {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	c, ok := all[key]
	if !ok {
		c = &count{}
		all[key] = c
	}
	return c
}

// object is an object of the provider.
type object interface {
	client.Object
	GetConditions() []metav1.Condition
}

// describe returns what all kinds have.
func describe(o object, classes map[types.NamespacedName]string) status.InfrastructureObject {
	row := status.InfrastructureObject{
		Namespace: o.GetNamespace(), Name: o.GetName(), Cluster: clusterapi.ClusterName(o), State: "Unknown",
	}
	row.Class = cmp.Or(classes[types.NamespacedName{Namespace: row.Namespace, Name: row.Cluster}],
		o.GetAnnotations()[infrav1.ClassAnnotation])
	conditions := o.GetConditions()
	paused := meta.FindStatusCondition(conditions, infrav1.PausedCondition)
	ready := meta.FindStatusCondition(conditions, infrav1.ReadyCondition)
	switch {
	case paused != nil && paused.Status == metav1.ConditionTrue:
		row.State, row.Since, row.Message = infrav1.PausedReason, &paused.LastTransitionTime.Time, paused.Message
	case ready != nil:
		row.State, row.Since, row.Message = ready.Reason, &ready.LastTransitionTime.Time, ready.Message
	}
	if c := meta.FindStatusCondition(conditions, infrav1.SyncedCondition); c != nil && c.Status == metav1.ConditionFalse {
		row.Failure = &status.FailedCall{
			Hook: hookOf(o), Reason: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time,
		}
	}
	return row
}

// hookOf returns the hook that is called about an object now.
func hookOf(o object) string {
	verb := "Reconcile"
	if !o.GetDeletionTimestamp().IsZero() {
		verb = "Delete"
	}
	switch o.(type) {
	case *infrav1.HookgateCluster:
		return verb + "Cluster"
	case *infrav1.HookgateMachine:
		return verb + "Machine"
	default:
		return verb + "MachinePool"
	}
}
