// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// compose makes and removes the machines of a pool, one HookgateMachine for each, for which Cluster API makes Machines.
func (r *pools) compose(
	ctx context.Context, p, desired *infrav1.HookgateMachinePool, w *scope,
) (reconcile.Result, error) {
	list, err := r.machinesOf(ctx, r.client, p, w)
	if err != nil {
		return reconcile.Result{}, err
	}
	revision := revisionOf(p, w.machinePool)
	wanted := int(ptr.Deref(w.machinePool.Spec.Replicas, 1))
	if len(list) == 0 && len(p.Spec.ProviderIDList) > 0 && wanted > 0 &&
		p.Annotations[infrav1.AcceptEmptyAnnotation] != p.Spec.ExternalID {
		// As after a backup of which not all is restored yet: new machines would be made beside those that exist.
		setUnsynced(desired, infrav1.EmptyListReason, fmt.Sprintf("the pool had machines, but all its "+
			"HookgateMachines are missing: restore them, or confirm the loss with the annotation %s: "+
			"%s", infrav1.AcceptEmptyAnnotation,
			p.Spec.ExternalID))
		return later(jitter(poolInterval)), r.write(ctx, p, desired)
	}
	members, err := r.membersOf(ctx, list)
	if err != nil {
		return reconcile.Result{}, err
	}
	if todo := plan(members, revision, wanted); todo.create > 0 || len(todo.remove) > 0 {
		// Something is to be done: decide again from what is stored, of which the cache may lack the last.
		if list, err = r.machinesOf(ctx, r.live, p, w); err != nil {
			return reconcile.Result{}, err
		}
		if members, err = r.membersOf(ctx, list); err != nil {
			return reconcile.Result{}, err
		}
		if err := r.carryOut(ctx, p, w, list, plan(members, revision, wanted), revision); err != nil {
			return reconcile.Result{}, err
		}
	}
	decideComposed(desired, list, revision, wanted)
	return later(jitter(poolInterval)), r.write(ctx, p, desired)
}

// machinesOf returns the machines of a pool, by name.
func (r *pools) machinesOf(
	ctx context.Context, reader client.Reader, p *infrav1.HookgateMachinePool, w *scope,
) ([]infrav1.HookgateMachine, error) {
	name := p.Labels[clusterv1.MachinePoolNameLabel]
	if w.machinePool != nil {
		name = labelValue(w.machinePool.Name)
	} else if owner := clusterapi.OwnerOf(p, clusterv1.GroupVersion.Group, "MachinePool"); owner != "" {
		name = labelValue(owner)
	}
	list := &infrav1.HookgateMachineList{}
	if err := reader.List(ctx, list, client.InNamespace(p.Namespace), client.MatchingLabels{
		clusterv1.ClusterNameLabel: w.clusterName, clusterv1.MachinePoolNameLabel: name,
	}); err != nil {
		return nil, fmt.Errorf("list HookgateMachines: %w", err)
	}
	machines := slices.DeleteFunc(list.Items, func(m infrav1.HookgateMachine) bool {
		return !belongs(&m, client.ObjectKeyFromObject(p))
	})
	slices.SortFunc(machines, func(a, b infrav1.HookgateMachine) int { return strings.Compare(a.Name, b.Name) })
	return machines, nil
}

// membersOf returns what a plan has to know of the machines of a pool. Cluster API, an autoscaler or a person says on
// the Machine that it shall go.
func (r *pools) membersOf(ctx context.Context, list []infrav1.HookgateMachine) ([]member, error) {
	members := make([]member, len(list))
	for i := range list {
		m := &list[i]
		machine, err := r.machineOf(ctx, m)
		if err != nil {
			return nil, err
		}
		members[i] = newMember(m, machine)
	}
	return members, nil
}

// machineOf returns the Machine of a HookgateMachine; nil if Cluster API has not made it yet.
func (r *pools) machineOf(ctx context.Context, m *infrav1.HookgateMachine) (*clusterv1.Machine, error) {
	// Cluster API gives the Machine the name of the HookgateMachine, and makes it the owner a moment later.
	owner := cmp.Or(clusterapi.OwnerOf(m, clusterv1.GroupVersion.Group, "Machine"), m.Name)
	machine, err := get[clusterv1.Machine](ctx, r.client, m.Namespace, owner)
	if err != nil || machine == nil || !slices.Contains(machineToInfra(ctx, machine), requestOf(m)) {
		return nil, err
	}
	return machine, nil
}

// maxCreated is the number of machines of a pool that are made before its size is read again, so that a size that was a
// mistake can be mended. Each machine that appears makes the controller look at the pool again.
const maxCreated = limits.PoolStep

// carryOut makes and removes machines.
func (r *pools) carryOut(
	ctx context.Context, p *infrav1.HookgateMachinePool, w *scope, list []infrav1.HookgateMachine, todo todo,
	revision string,
) error {
	used := map[string]int{}
	for i := range list {
		used[list[i].Annotations[infrav1.FailureDomainAnnotation]]++
	}
	for range min(todo.create, maxCreated) {
		domain := leastUsed(w.machinePool.Spec.FailureDomains, used)
		used[domain]++
		m := newPoolMachine(p, w, revision, domain)
		if err := r.client.Create(ctx, m); err != nil {
			return fmt.Errorf("create HookgateMachine: %w", err)
		}
		r.await(ctx, m)
	}
	removed := setOf(todo.remove)
	for i := range list {
		if removed[list[i].Name] {
			if err := r.remove(ctx, &list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove removes a machine of a pool: by its Machine, so that Cluster API drains its Node first, if it has one.
func (r *pools) remove(ctx context.Context, m *infrav1.HookgateMachine) error {
	machine, err := r.machineOf(ctx, m)
	if err != nil {
		return err
	}
	if machine != nil {
		if !machine.DeletionTimestamp.IsZero() {
			return nil
		}
		return client.IgnoreNotFound(r.client.Delete(ctx, machine))
	}
	if !m.DeletionTimestamp.IsZero() {
		return nil
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, m))
}

// newPoolMachine returns a HookgateMachine of a pool. Cluster API makes the Machine of that name the controller, so the
// pool must not be.
func newPoolMachine(p *infrav1.HookgateMachinePool, w *scope, revision, domain string) *infrav1.HookgateMachine {
	m := memberOf(p, w, strings.ToLower(rand.Text()[:8]), revision, w.machinePool.Spec.Template.Spec.Version, domain)
	m.Spec.Parameters = p.Spec.Parameters.DeepCopy()
	return m
}

// memberOf returns a HookgateMachine of a pool, whose name ends with suffix.
func memberOf(
	p *infrav1.HookgateMachinePool, w *scope, suffix, revision, version, domain string,
) *infrav1.HookgateMachine {
	const most = 240
	name := p.Name
	if len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	m := &infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{
		Name: name + "-" + suffix, Namespace: p.Namespace,
		Labels: map[string]string{
			clusterv1.ClusterNameLabel: w.clusterName, clusterv1.MachinePoolNameLabel: labelValue(w.machinePool.Name),
		},
		Annotations: map[string]string{
			infrav1.RevisionAnnotation: revision, infrav1.VersionAnnotation: version,
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: infrav1.GroupVersion.String(), Kind: infrav1.HookgateMachinePoolKind, Name: p.Name, UID: p.UID,
		}},
	}}
	if domain != "" {
		m.Annotations[infrav1.FailureDomainAnnotation] = domain
	}
	if filter := p.Labels[clusterv1.WatchLabel]; filter != "" {
		m.Labels[clusterv1.WatchLabel] = filter
	}
	return m
}

func leastUsed(domains []string, used map[string]int) string {
	if len(domains) == 0 {
		return ""
	}
	return slices.MinFunc(domains, func(a, b string) int { return used[a] - used[b] })
}
