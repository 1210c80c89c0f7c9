// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// newIdentity returns an identity for namespaces, whose Secret has its name.
func newIdentity(name string, namespaces ...string) *infrav1.HookgateClusterIdentity {
	i := &infrav1.HookgateClusterIdentity{ObjectMeta: metav1.ObjectMeta{Name: name}}
	i.Spec.CredentialsRef.Name = name
	i.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Names: namespaces}
	return i
}

// newTenant returns a fixture with an identity, whose controllers have a namespace of their own and keep their log.
func newTenant(t *testing.T) (*fixture, *infrav1.HookgateClusterIdentity) {
	t.Helper()
	w := newFixture(t, func(w *fixture) {
		w.system, w.log = w.namespace+"-system", &process.Log{}
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.system}})
	})
	identity := newIdentity(w.namespace, w.namespace)
	w.create(identity)
	return w, identity
}

// setToken writes the Secret of an identity, as an administrator or a tool that rotates credentials does.
func (w *fixture) setToken(identity *infrav1.HookgateClusterIdentity, token string) {
	w.t.Helper()
	s := secret(identity.Spec.CredentialsRef.Name, "token", token)
	s.Namespace = w.system
	stored := s.DeepCopy()
	if !w.get(stored) {
		if err := w.client.Create(w.t.Context(), s); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	update(w, stored, func(o *corev1.Secret) { o.Data = s.Data })
}

// TestIdentity makes a Cluster in the name of an identity, whose Secret comes later and is rotated twice: the extension
// gets the new credentials at once, also for what the backend has refused, and nothing else shows any of them. An
// identity that is used stays.
func TestIdentity(t *testing.T) {
	w, identity := newTenant(t)
	of := func(c *infrav1.HookgateCluster) { c.Spec.IdentityRef = &infrav1.IdentityReference{Name: identity.Name} }
	eventually(w, identity, "without a Secret", func(i *infrav1.HookgateClusterIdentity) bool {
		return has(i, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.CredentialsNotFoundReason, "does not exist: create it")
	})
	cluster, infra := w.newCluster("c", of)
	eventually(w, infra, "without credentials", func(c *infrav1.HookgateCluster) bool {
		return has(c, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.CredentialsNotFoundReason, "")
	})
	if n := w.cloud.count(); n != 0 {
		t.Errorf("the extension was called %d times without credentials", n)
	}

	const first, second, third = "first-secret", "second-secret", "third-secret"
	w.setToken(identity, first)
	eventually(w, identity, "ready", func(i *infrav1.HookgateClusterIdentity) bool {
		return has(i, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") &&
			has(i, infrav1.CredentialsMovableCondition, metav1.ConditionTrue, "", "")
	})
	owned := secret(identity.Name, "", "")
	owned.Namespace = w.system
	if !w.get(owned) || len(owned.OwnerReferences) != 1 || owned.OwnerReferences[0].UID != identity.UID {
		t.Errorf("the Secret has the owners %v", owned.OwnerReferences)
	}
	eventually(w, infra, "provisioned", hasInfrastructure)
	updateStatus(w, cluster, func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = new(true) })
	_, m := w.readyMachine("c", "m")
	if got := m.Annotations[infrav1.IdentityAnnotation]; got != identity.Name {
		t.Errorf("the machine has recorded the identity %q", got)
	}

	// The backend refuses the old token, and the extension even repeats it.
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		r, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest)
		if token := r.GetSubject().GetCredentials()["token"]; ok && token != third {
			return &infrahooksv1alpha1.ReconcileMachineResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: "refused: " + token,
			}, nil
		}
		return nil, nil
	})
	w.setToken(identity, second)
	eventually(w, m, "unsynced", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.CallFailedReason, "refused: ")
	})
	w.setToken(identity, third)
	eventually(w, m, "synced", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionTrue, "", "")
	})
	w.until("the Cluster was reconciled with the new token", func() bool {
		return slices.ContainsFunc(calls[*infrahooksv1alpha1.ReconcileClusterRequest](w.cloud),
			func(r *infrahooksv1alpha1.ReconcileClusterRequest) bool {
				return r.GetSubject().GetCredentials()["token"] == third
			})
	})

	w.delete(identity)
	eventually(w, identity, "kept", func(i *infrav1.HookgateClusterIdentity) bool {
		return has(i, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason, "stays while objects use it")
	})
	w.cloud.answers(nil)
	w.delete(infra)
	w.delete(m)
	w.gone(m)
	w.gone(infra)
	w.restart() // instead of a minute
	w.gone(identity)

	var all strings.Builder
	all.WriteString(w.log.String())
	for _, list := range []client.ObjectList{&eventsv1.EventList{}, &infrav1.HookgateMachineList{}, &infrav1.HookgateClusterList{}} {
		if err := w.client.List(t.Context(), list, client.InNamespace(w.namespace)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%+v", list)
	}
	seen := all.String()
	if !strings.Contains(seen, "CallFailed") {
		t.Error("there is no trace of the failure, in which credentials could have been")
	}
	for _, token := range []string{first, second, third} {
		if strings.Contains(seen, token) {
			t.Errorf("%q is in a log, an event or an object", token)
		}
	}
}

// TestPausedIdentity leaves a paused identity, and its Secret, as they are until it is no longer paused.
func TestPausedIdentity(t *testing.T) {
	w, other := newTenant(t)
	w.setToken(other, "secret")
	i := newIdentity("paused-"+w.namespace, w.namespace)
	i.Spec.CredentialsRef.Name = other.Name
	i.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	w.create(i)
	eventually(w, i, "paused", func(i *infrav1.HookgateClusterIdentity) bool {
		return has(i, infrav1.PausedCondition, metav1.ConditionTrue, "", "annotation "+clusterv1.PausedAnnotation)
	})
	if len(i.Finalizers) != 0 || len(i.Status.Conditions) != 1 {
		t.Errorf("a paused identity has the finalizers %v and the conditions %s", i.Finalizers, conditionsOf(i))
	}
	update(w, i, func(i *infrav1.HookgateClusterIdentity) { i.Annotations = nil })
	eventually(w, i, "ready", func(i *infrav1.HookgateClusterIdentity) bool {
		return has(i, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") &&
			has(i, infrav1.PausedCondition, metav1.ConditionFalse, "", "")
	})
}

// TestIdentityOfOthers uses an identity in a namespace that it is not for: nothing is called, and nothing deleted, until
// the namespace is allowed. An identity that does not exist is waited for.
func TestIdentityOfOthers(t *testing.T) {
	w, identity := newTenant(t)
	w.setToken(identity, "secret")
	update(w, identity, func(i *infrav1.HookgateClusterIdentity) {
		i.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Names: []string{"others"}}
	})
	name := "later-" + identity.Name
	_, infra := w.newCluster("c", func(c *infrav1.HookgateCluster) { c.Spec.IdentityRef = &infrav1.IdentityReference{Name: name} })
	eventually(w, infra, "without an identity", func(c *infrav1.HookgateCluster) bool {
		return has(c, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.IdentityNotFoundReason, name)
	})
	update(w, infra, func(c *infrav1.HookgateCluster) { c.Spec.IdentityRef.Name = identity.Name })
	eventually(w, infra, "not allowed", func(c *infrav1.HookgateCluster) bool {
		return has(c, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.NamespaceNotAllowedReason, identity.Name)
	})
	forged := newInfraMachine("gone", "forged")
	forged.Finalizers = []string{infrav1.MachineFinalizer}
	forged.Annotations = map[string]string{infrav1.ClassAnnotation: w.namespace, infrav1.IdentityAnnotation: identity.Name}
	forged.Spec.ExternalID = "forged"
	w.create(forged)
	w.delete(forged)
	eventually(w, forged, "not deleted in somebody else's name", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, infrav1.NamespaceNotAllowedReason, "")
	})
	if n := w.cloud.count(); n != 0 {
		t.Errorf("the extension was called %d times", n)
	}
	update(w, identity, func(i *infrav1.HookgateClusterIdentity) {
		i.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Selector: &metav1.LabelSelector{
			MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace},
		}}
	})
	eventually(w, infra, "provisioned", hasInfrastructure)
}
