// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/provider/v1alpha1"
)

func jsonOf(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// secret returns a Secret with one value.
func secret(name, key, value string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if key != "" {
		s.Data = map[string][]byte{key: []byte(value)}
	}
	return s
}

// counted returns the sum of a counter.
func (w *fixture) counted(name string) float64 {
	w.t.Helper()
	families, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// Wrong input is a condition that says what to do. Nothing is called, and all is well once it is mended.
func TestWrongInputOfAMachine(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	before := w.cloud.count()
	_, m := w.newMachine("c", "m", func(m *infrav1.HookgateMachine) { m.Spec.Parameters = jsonOf(`{"size":"huge","colour":1}`) })
	eventually(w, m, "invalid", func(m *infrav1.HookgateMachine) bool {
		return has(m, infrav1.ParametersValidCondition, metav1.ConditionFalse, infrav1.InvalidParametersReason, "spec.parameters.size") &&
			has(m, infrav1.ParametersValidCondition, metav1.ConditionFalse, "", "spec.parameters.colour") &&
			has(m, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.InvalidParametersReason, "")
	})
	if n := w.cloud.count() - before; n != 0 {
		t.Errorf("%d calls with wrong parameters", n)
	}
	update(w, m, func(m *infrav1.HookgateMachine) { m.Spec.Parameters = jsonOf(`{"size":"large"}`) })
	eventually(w, m, "provisioned", isProvisioned)
	if !has(m, infrav1.ParametersValidCondition, metav1.ConditionTrue, "", "") {
		t.Errorf("the conditions are\n%s", conditionsOf(m))
	}
}

func TestWrongInputOfACluster(t *testing.T) {
	for name, c := range map[string]struct {
		change          func(*infrav1.HookgateCluster)
		class           func(*infrav1.InfrastructureClass)
		reason, message string
	}{
		"UnknownClass": {change: func(c *infrav1.HookgateCluster) { c.Spec.InfrastructureClassName = "nobody" },
			reason: infrav1.ClassNotFoundReason, message: `InfrastructureClass "nobody" does not exist`},
		"MissingCredentials": {change: func(c *infrav1.HookgateCluster) { c.Spec.CredentialsRef = &infrav1.SecretReference{Name: "none"} },
			reason: infrav1.CredentialsNotFoundReason, message: "/none with the credentials does not exist: create it"},
		"CredentialsElsewhere": {change: func(c *infrav1.HookgateCluster) {
			c.Spec.CredentialsRef = &infrav1.SecretReference{Name: "creds", Namespace: "kube-system"}
		}, reason: infrav1.CredentialsNotFoundReason, message: "kube-system/creds: it must be in the namespace"},
		"Namespace": {class: func(c *infrav1.InfrastructureClass) {
			c.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Names: []string{"team-b"}}
		}, reason: infrav1.NamespaceNotAllowedReason, message: "spec.allowedNamespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			if c.class != nil {
				class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
				update(w, class, c.class)
			}
			_, infra := w.newCluster("c", func(o *infrav1.HookgateCluster) {
				if c.change != nil {
					c.change(o)
				}
			})
			eventually(w, infra, "refused", func(o *infrav1.HookgateCluster) bool {
				return has(o, infrav1.ReadyCondition, metav1.ConditionFalse, c.reason, c.message)
			})
			if n := w.cloud.count(); n != 0 {
				t.Errorf("%d calls", n)
			}
			w.delete(infra) // nothing was made, so nothing keeps it
			w.gone(infra)
		})
	}
}

// The Secret that a HookgateCluster names is labelled for clusterctl move, and the HookgateCluster says so. It stays
// when the Cluster is deleted.
func TestCredentialsAreMadeToMove(t *testing.T) {
	w := newFixture(t)
	creds := secret("creds", "token", "very-secret")
	w.create(creds)
	_, infra := w.readyCluster("c", func(c *infrav1.HookgateCluster) {
		c.Spec.CredentialsRef = &infrav1.SecretReference{Name: "creds"}
	})
	if !has(infra, infrav1.CredentialsMovableCondition, metav1.ConditionTrue, "", "") {
		t.Errorf("the conditions are\n%s", conditionsOf(infra))
	}
	w.get(creds)
	if _, ok := creds.Labels["clusterctl.cluster.x-k8s.io/move"]; !ok || string(creds.Data["token"]) != "very-secret" || len(creds.OwnerReferences) != 0 {
		t.Errorf("the Secret has the labels %v, the owners %v and the data %v", creds.Labels, creds.OwnerReferences, creds.Data)
	}
	w.delete(infra)
	w.gone(infra)
	if !w.get(creds) {
		t.Error("the Secret was deleted with the Cluster")
	}
}

// Answers that must not be used change nothing but Synced.
func TestAnswersThatAreNotBelieved(t *testing.T) {
	w := newFixture(t)
	w.create(secret("creds", "token", "very-secret"))
	w.readyCluster("c", func(c *infrav1.HookgateCluster) { c.Spec.CredentialsRef = &infrav1.SecretReference{Name: "creds"} })
	var answer *infrahooksv1alpha1.ReconcileMachineResponse
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest); ok {
			w.cloud.mu.Lock()
			defer w.cloud.mu.Unlock()
			return proto.Clone(answer), nil
		}
		return nil, nil
	})
	for name, c := range map[string]struct {
		change          func(*infrahooksv1alpha1.ReconcileMachineResponse)
		reason, message string
	}{
		"phase":  {func(r *infrahooksv1alpha1.ReconcileMachineResponse) { r.Phase = 0 }, infrav1.BadAnswerReason, "phase is missing"},
		"no-id":  {func(r *infrahooksv1alpha1.ReconcileMachineResponse) { r.ProviderId = "" }, infrav1.BadAnswerReason, "providerId is missing"},
		"prefix": {func(r *infrahooksv1alpha1.ReconcileMachineResponse) { r.ProviderId = "aws://x" }, infrav1.BadAnswerReason, `does not begin with "fake://"`},
		"reserved": {func(r *infrahooksv1alpha1.ReconcileMachineResponse) {
			r.Conditions = []*infrahooksv1alpha1.Condition{{Type: "Ready", Status: "True", Reason: "R"}}
		}, infrav1.BadAnswerReason, "Ready belongs to the controllers"},
		"secret": {func(r *infrahooksv1alpha1.ReconcileMachineResponse) {
			r.Status, r.Message = 2, "login with very-secret failed"
		}, infrav1.CallFailedReason, "login with *** failed"},
	} {
		w.cloud.mu.Lock()
		answer = readyMachine(name)
		c.change(answer)
		w.cloud.mu.Unlock()
		_, m := w.newMachine("c", "m-"+name)
		eventually(w, m, "not used: "+name, func(m *infrav1.HookgateMachine) bool {
			return has(m, infrav1.SyncedCondition, metav1.ConditionFalse, c.reason, c.message)
		})
		if m.Spec.ProviderID != "" || isProvisioned(m) || strings.Contains(conditionsOf(m), "very-secret") {
			t.Errorf("%s: %v\n%s", name, m.Spec, conditionsOf(m))
		}
		w.cloud.mu.Lock()
		answer = readyMachine(name)
		w.cloud.mu.Unlock()
		eventually(w, m, "provisioned", isProvisioned)
	}
}
