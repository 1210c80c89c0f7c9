// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// size is what a request says about the size of a pool.
type size struct {
	wanted   *int32   // what the MachinePool wants; nil if something else decides
	replicas *int32   // what the extension is asked for: more while Nodes are drained, or in a rollout
	remove   []string // the provider IDs of instances whose Nodes have been drained
	early    bool     // nothing was chosen to go, because the process has had no answer
}

// sizeOf decides what the extension is asked for, and has the Machines deleted that are to go. Without Machines, the
// backend chooses what goes.
func (r *pools) sizeOf(
	ctx context.Context, p *infrav1.HookgateMachinePool, w *scope, machines []infrav1.HookgateMachine,
) (size, error) {
	var s size
	if clusterapi.DecidesReplicas(w.machinePool) {
		s.wanted = new(ptr.Deref(w.machinePool.Spec.Replicas, 1))
		s.replicas = s.wanted
	}
	if !asMachines(p) {
		return s, nil
	}
	members, err := r.membersOf(ctx, machines)
	if err != nil {
		return s, err
	}
	absent := r.absent.of(client.ObjectKeyFromObject(p))
	for i := range members {
		_, members[i].absent = absent[members[i].name]
	}
	todo := planInstances(members, revisionOf(p, w.machinePool), s.wanted)
	if absent == nil { // it is not known yet what the backend has replaced
		s.early, todo.remove = true, nil
	}
	alive := 0
	for i := range machines {
		m := &machines[i]
		switch {
		case !m.DeletionTimestamp.IsZero():
			if m.Spec.ProviderID != "" && !unmanaged(m) && pausedBy(nil, m) == "" {
				s.remove = append(s.remove, m.Spec.ProviderID)
			}
			continue
		case members[i].present():
			alive++
		}
		if slices.Contains(todo.remove, m.Name) {
			if err := r.remove(ctx, m); err != nil {
				return s, err
			}
		}
	}
	slices.Sort(s.remove)
	if n := p.Status.Replicas; s.early && n != nil { // clusterctl move takes no status along
		alive = min(alive, int(*n))
	}
	if s.replicas != nil {
		s.replicas = new(max(*s.wanted, int32(alive+todo.create)))
	}
	return s, nil
}

// planInstances decides what brings a group closer to the wanted number of instances of a revision, which is nil if
// something else decides. Instances that are gone outside go first, and count for nothing: the backend replaces them.
// Those that its last answer lacks count for nothing, too, since it may have replaced them, but they stay.
func planInstances(members []member, revision string, wanted *int32) todo {
	var gone []string
	var present []member
	for _, m := range members {
		if m.gone && !m.deleting {
			gone = append(gone, m.name)
		}
		if m.present() {
			present = append(present, m)
		}
	}
	old := slices.ContainsFunc(present, func(m member) bool { return m.revision != revision })
	var t todo
	switch {
	case wanted != nil:
		t = plan(present, revision, int(*wanted))
	case old: // nothing can be made beside it: one is removed, and what decides replaces it
		t = plan(present, revision, len(present)-1)
	}
	t.remove = append(gone, t.remove...)
	return t
}

// instanceSuffix returns the end of the name of the HookgateMachine of an instance. The same instance always has
// the same one, so that it never has two.
func instanceSuffix(p *infrav1.HookgateMachinePool, instance string) string {
	sum := sha256.Sum256([]byte(p.Spec.ExternalID + "/" + instance))
	return hex.EncodeToString(sum[:6])
}

// newInstanceMachine returns the HookgateMachine of an instance. It has an externalID for the annotation that abandons
// it alone: the extension knows the instance by the pool's, and its name.
func newInstanceMachine(
	p *infrav1.HookgateMachinePool, w *scope, i *infrahooksv1alpha1.Instance, revision string,
) *infrav1.HookgateMachine {
	m := memberOf(p, w, instanceSuffix(p, i.GetName()), cmp.Or(i.GetRevision(), revision),
		cmp.Or(i.GetVersion(), w.machinePool.Spec.Template.Spec.Version), i.GetFailureDomain())
	m.Annotations[infrav1.InstanceAnnotation] = i.GetName()
	for key, value := range recordOf(w) {
		if value != "" {
			m.Annotations[key] = value
		}
	}
	m.Finalizers = []string{infrav1.MachineFinalizer}
	m.Spec.ExternalID, m.Spec.ProviderID = newExternalID(m.Name), i.GetProviderId()
	return m
}

// showInstances makes the HookgateMachines of a pool show the instances of an answer: it makes those that lack,
// releases those whose instances are removed, and says of the others what the extension says.
func (r *pools) showInstances(
	ctx context.Context, p *infrav1.HookgateMachinePool, w *scope, machines []infrav1.HookgateMachine,
	a *infrahooksv1alpha1.ReconcileMachinePoolResponse, req *infrahooksv1alpha1.ReconcileMachinePoolRequest,
) error {
	byName, byID := map[string]*infrav1.HookgateMachine{}, map[string]*infrav1.HookgateMachine{}
	for i := range machines {
		byName[machines[i].Annotations[infrav1.InstanceAnnotation]] = &machines[i]
		byID[machines[i].Spec.ProviderID] = &machines[i]
	}
	seen := map[string]bool{} // HookgateMachines
	for _, i := range a.GetInstances() {
		m, ok := byID[i.GetProviderId()]
		if !ok || i.GetProviderId() == "" {
			m, ok = byName[i.GetName()]
		}
		switch {
		case !ok:
			if err := r.createInstance(ctx, newInstanceMachine(p, w, i, req.GetRevision()), i); err != nil {
				return err
			}
			continue
		case m.Spec.ProviderID != "" && i.GetProviderId() != "" && m.Spec.ProviderID != i.GetProviderId():
			continue // another instance of the same name: it gets a HookgateMachine when this one is gone
		}
		seen[m.Name] = true
		if err := r.showInstance(ctx, m, i); err != nil {
			return err
		}
	}
	return r.lackInstances(ctx, p, machines, seen, setOf(req.GetRemove()))
}

// createInstance creates the HookgateMachine of an instance, and records what the extension says about it.
func (r *pools) createInstance(
	ctx context.Context, m *infrav1.HookgateMachine, i *infrahooksv1alpha1.Instance,
) error {
	switch err := r.client.Create(ctx, m); {
	case apierrors.IsAlreadyExists(err):
		return nil // the cache lacks it still, or one of that name is not gone yet
	case err != nil:
		return fmt.Errorf("create HookgateMachine of instance %q: %w", i.GetName(), err)
	}
	return r.showInstance(ctx, m, i)
}

// showInstance records what the extension says about an instance. One that is being deleted, or is paused, stays as it
// is.
func (r *pools) showInstance(ctx context.Context, m *infrav1.HookgateMachine, i *infrahooksv1alpha1.Instance) error {
	if !m.DeletionTimestamp.IsZero() || unmanaged(m) || pausedBy(nil, m) != "" {
		return nil
	}
	desired := m.DeepCopy()
	decideInstance(desired, i)
	return client.IgnoreNotFound(r.write(ctx, m, desired))
}

// decideInstance records what the extension says about an instance.
func decideInstance(m *infrav1.HookgateMachine, i *infrahooksv1alpha1.Instance) {
	controllerutil.AddFinalizer(m, infrav1.MachineFinalizer)
	for key, value := range map[string]string{
		infrav1.RevisionAnnotation: i.GetRevision(), infrav1.VersionAnnotation: i.GetVersion(),
		infrav1.FailureDomainAnnotation: i.GetFailureDomain(),
	} {
		if value != "" {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value)
		}
	}
	m.Spec.ProviderID = cmp.Or(m.Spec.ProviderID, i.GetProviderId())
	setSeen(m, seenInstance{i})
	setSynced(m)
	setPaused(m, "")
	if len(i.GetAddresses()) > 0 {
		m.Status.Addresses = addressesOf(i.GetAddresses())
	}
	m.Status.FailureDomain = cmp.Or(i.GetFailureDomain(), m.Status.FailureDomain)
	if i.GetPhase() == infrahooksv1alpha1.Phase_PHASE_READY {
		m.Status.Initialization.Provisioned = new(true)
	}
}

// seenInstance is an instance as an answer about a machine.
type seenInstance struct{ *infrahooksv1alpha1.Instance }

// GetMessage returns nothing: instances have a reason alone.
func (seenInstance) GetMessage() string { return "" }

// GetConditions returns nothing.
func (seenInstance) GetConditions() []*infrahooksv1alpha1.Condition { return nil }

// lackInstances handles the HookgateMachines whose instances an answer lacks. One whose instance was to be removed is
// released. For the others, one answer is not enough: two must lack it, at least missingFor apart.
func (r *pools) lackInstances(
	ctx context.Context, p *infrav1.HookgateMachinePool, machines []infrav1.HookgateMachine, seen, removed map[string]bool,
) error {
	key, next := client.ObjectKeyFromObject(p), map[string]time.Time{}
	since := r.absent.of(key)
	defer func() { r.absent.set(key, next) }()
	for i := range machines {
		m := &machines[i]
		if seen[m.Name] {
			continue
		}
		first, ok := since[m.Name]
		if !ok {
			first = r.now()
		}
		next[m.Name] = first
		gone := r.now().Sub(first) >= missingFor
		deleting := !m.DeletionTimestamp.IsZero()
		switch {
		case unmanaged(m) || pausedBy(nil, m) != "":
		case deleting && (gone || m.Spec.ProviderID != "" && removed[m.Spec.ProviderID]):
			if err := r.release(ctx, m, infrav1.MachineFinalizer); err != nil {
				return err
			}
		case gone && !deleting:
			desired := m.DeepCopy()
			set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.InstanceGoneReason,
				"the extension no longer lists the instance")
			if err := client.IgnoreNotFound(r.write(ctx, m, desired)); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseInstances releases the HookgateMachines of instances that are gone with their pool, or were abandoned with it.
func (r *pools) releaseInstances(ctx context.Context, machines []infrav1.HookgateMachine) error {
	for i := range machines {
		if machines[i].Annotations[infrav1.InstanceAnnotation] == "" {
			continue
		}
		if err := r.release(ctx, &machines[i], infrav1.MachineFinalizer); err != nil {
			return err
		}
	}
	return nil
}

// instanceGone reports whether the instance that a HookgateMachine stands for is gone outside.
func instanceGone(m *infrav1.HookgateMachine) bool {
	ready := meta.FindStatusCondition(m.Status.Conditions, infrav1.ReadyCondition)
	return m.Annotations[infrav1.InstanceAnnotation] != "" && ready != nil &&
		ready.Status == metav1.ConditionFalse && ready.Reason == infrav1.InstanceGoneReason
}

// setOf returns the set of some texts.
func setOf(list []string) map[string]bool {
	set := make(map[string]bool, len(list))
	for _, s := range list {
		set[s] = true
	}
	return set
}
