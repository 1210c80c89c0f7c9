// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// labelValue returns a name as the value of a label, as Cluster API's format.MustFormatValue does.
func labelValue(name string) string {
	if len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return fmt.Sprintf("hash_%s_z", base64.RawURLEncoding.EncodeToString(h.Sum(nil)))
}

// revisionOf returns a digest of what the machines of a pool are made from. The bootstrap data counts by the name of
// its Secret: its token is renewed all the time.
func revisionOf(p *infrav1.HookgateMachinePool, mp *clusterv1.MachinePool) string {
	var parameters any
	if raw := rawJSON(p.Spec.Parameters); len(raw) > 0 {
		_ = json.Unmarshal(raw, &parameters) // the API server stores valid JSON; other is compared as nothing
	}
	data, err := json.Marshal([]any{
		mp.Spec.Template.Spec.Version, parameters, mp.Spec.FailureDomains,
		ptr.Deref(mp.Spec.Template.Spec.Bootstrap.DataSecretName, ""),
	})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// member is what a plan has to know of a machine of a pool.
type member struct {
	name, revision  string
	ready, deleting bool
	// preferred is for those that an autoscaler or a person has marked, leaving for those that are drained already, and
	// failed for those that a health check wants replaced.
	preferred, leaving, failed bool
	gone, absent               bool // outside, and from the last answer alone; of an instance of a group
	created                    time.Time
}

// present reports whether an instance of a group counts.
func (m member) present() bool { return !m.gone && !m.absent && !m.deleting }

// A todo is how many machines to make, and which to remove.
type todo struct {
	create int
	remove []string
}

// newMember returns a member from the machine and its Machine, which may be nil.
func newMember(m *infrav1.HookgateMachine, machine *clusterv1.Machine) member {
	_, preferred := m.Annotations[clusterv1.DeleteMachineAnnotation]
	result := member{
		name: m.Name, revision: m.Annotations[infrav1.RevisionAnnotation], ready: isReady(m),
		deleting: !m.DeletionTimestamp.IsZero(), preferred: preferred, gone: instanceGone(m),
		created: m.CreationTimestamp.Time,
	}
	if machine != nil {
		if _, ok := machine.Annotations[clusterv1.DeleteMachineAnnotation]; ok {
			result.preferred = true
		}
		result.leaving, result.failed = !machine.DeletionTimestamp.IsZero(), toRemediate(machine)
	}
	return result
}

// toRemediate reports whether a health check wants the owner of a Machine to replace it. Cluster API's own controllers
// do so for the Machines of a MachineSet and a control plane, and leave those of a pool to its provider.
func toRemediate(m *clusterv1.Machine) bool {
	return meta.IsStatusConditionFalse(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition) &&
		meta.IsStatusConditionFalse(m.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
}

func isReady(m *infrav1.HookgateMachine) bool {
	return provisioned(m.Status.Initialization) && saysReady(m)
}

// plan decides what brings a pool closer to the wanted number of machines of a revision. A rollout makes one machine of
// the new revision, and removes an old one once all new ones are ready. Those that go first are those that leave
// anyway, then preferred ones, then those of an old revision, then those that are not ready, then the oldest. Failed
// ones go at once, and count as gone: the health check decides how many may.
func plan(members []member, revision string, wanted int) todo {
	var t todo
	alive := slices.DeleteFunc(slices.Clone(members), func(m member) bool {
		if m.failed && !m.deleting && !m.leaving {
			t.remove = append(t.remove, m.name)
		}
		return m.deleting || m.failed
	})
	old, pending := 0, 0 // of another revision; of this revision and not ready
	for _, m := range alive {
		switch {
		case m.revision != revision:
			old++
		case !m.ready:
			pending++
		}
	}
	excess := len(alive) - wanted
	switch {
	case excess < 0:
		t.create = -excess
		return t
	case excess == 0 && old > 0 && pending == 0:
		t.create = 1
		return t
	}
	if old > 0 {
		excess -= pending // what is ready must suffice meanwhile
	}
	if excess <= 0 {
		return t
	}
	first := func(b bool) int {
		if b {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(alive, func(a, b member) int {
		return cmp.Or(
			first(a.leaving)-first(b.leaving), first(a.preferred)-first(b.preferred),
			first(a.revision != revision)-first(b.revision != revision),
			first(!a.ready)-first(!b.ready), a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	for _, m := range alive[:excess] {
		t.remove = append(t.remove, m.name)
	}
	return t
}

// decideComposed records the machines of a pool. A provider ID leaves the list when its HookgateMachine is gone, which
// only an answer that the machine is gone brings about.
func decideComposed(p *infrav1.HookgateMachinePool, list []infrav1.HookgateMachine, revision string, wanted int) {
	var ids []string
	var instances []infrav1.MachinePoolInstance
	ready, alive, old := 0, 0, 0
	for i := range list {
		m := &list[i]
		if m.DeletionTimestamp.IsZero() {
			alive++
			if isReady(m) {
				ready++
			}
			if m.Annotations[infrav1.RevisionAnnotation] != revision {
				old++
			}
		}
		if m.Spec.ProviderID == "" {
			continue
		}
		ids = append(ids, m.Spec.ProviderID)
		instances = append(instances, infrav1.MachinePoolInstance{
			InstanceName: m.Name, ProviderID: m.Spec.ProviderID, Ready: new(isReady(m)),
			Version:  m.Annotations[infrav1.VersionAnnotation],
			Revision: m.Annotations[infrav1.RevisionAnnotation], FailureDomain: m.Status.FailureDomain,
			Addresses: m.Status.Addresses[:min(len(m.Status.Addresses), limits.InstanceAddresses)],
		})
	}
	slices.Sort(ids)
	p.Spec.ProviderIDList = ids
	p.Status.Replicas = new(int32(len(ids)))
	p.Status.Instances = instances[:min(len(instances), limits.ReportedInstances)]
	p.Status.InfrastructureMachineKind = infrav1.HookgateMachineKind
	setSynced(p)
	decidePoolReady(p, wanted, ready, alive, old, len(list) != alive)
}

// decidePoolReady records whether a pool has the machines that it should have. Once it had, it stays provisioned.
func decidePoolReady(p *infrav1.HookgateMachinePool, wanted, ready, alive, old int, removing bool) {
	switch {
	case old > 0:
		set(p, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.RollingOutReason,
			"machines of another revision are being replaced")
	case alive != wanted, removing:
		set(p, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ScalingReason,
			fmt.Sprintf("%d machines are wanted", wanted))
	case ready != wanted:
		set(p, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ProvisioningReason, "not all machines are ready")
	default:
		set(p, infrav1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
		p.Status.Ready, p.Status.Initialization.Provisioned = new(true), new(true)
	}
}
