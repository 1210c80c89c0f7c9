// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/registry"
)

// lifting returns the policy of acme that lifts holds.
func lifting(t testing.TB, of ...v1alpha1.LiftedHold) registry.Policies {
	t.Helper()
	c, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	p, errs := extensionpolicy.Compile(&v1alpha1.ExtensionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "on-call"},
		Spec:       v1alpha1.ExtensionPolicySpec{TargetRef: v1alpha1.TargetReference{Name: "acme"}, LiftedHolds: of},
	}, c, allHooks)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	return registry.Policies{All: p.Compiled}
}

// A policy lifts the hold of one handler for one Cluster, over both protocols. The handler is asked each time, and no
// other hold, and no Failure, is lifted.
func TestLiftHold(t *testing.T) {
	const waits, quota = `{"status":"Success","message":"waits","retryAfterSeconds":5}`, `{"status":"Success","message":"quota","retryAfterSeconds":60}`
	const goesOn = `hold lifted by liftedHolds of ExtensionPolicy "on-call": `
	a := v1alpha1.LiftedHold{Handler: "a.acme", Hook: "BeforeClusterCreate", Cluster: "n/c", UID: "u"}
	b := a
	b.Handler = "b.acme"
	but := func(change func(*v1alpha1.LiftedHold)) v1alpha1.LiftedHold {
		l := a
		change(&l)
		return l
	}
	for name, tc := range map[string]struct {
		reason  string
		lifted  []v1alpha1.LiftedHold
		answer  string // of a
		message string
		retry   int32
	}{
		"nothing":         {"both hold", nil, waits, "waits, quota", 5},
		"one":             {"the other one holds", []v1alpha1.LiftedHold{a}, waits, goesOn + "waits, quota", 60},
		"both":            {"none holds", []v1alpha1.LiftedHold{a, b}, waits, goesOn + "waits, " + goesOn + "quota", 0},
		"without message": {"it is named", []v1alpha1.LiftedHold{a}, `{"status":"Success","retryAfterSeconds":5}`, goesOn + "it does not say why, quota", 60},
		"Failure":         {"it is no hold", []v1alpha1.LiftedHold{a}, `{"status":"Failure","message":"no","retryAfterSeconds":5}`, `handler "a.acme": no`, 0},
		"does not hold":   {"nothing is lifted", []v1alpha1.LiftedHold{a}, `{"status":"Success","message":"fine"}`, "fine, quota", 60},
		"another uid":     {"a Cluster that was made again waits", []v1alpha1.LiftedHold{but(func(l *v1alpha1.LiftedHold) { l.UID = "v" })}, waits, "waits, quota", 5},
		"another name":    {"it is for one Cluster", []v1alpha1.LiftedHold{but(func(l *v1alpha1.LiftedHold) { l.Cluster = "n/d" })}, waits, "waits, quota", 5},
		"namespace":       {"it is for one Cluster", []v1alpha1.LiftedHold{but(func(l *v1alpha1.LiftedHold) { l.Cluster = "m/c" })}, waits, "waits, quota", 5},
		"another hook":    {"it is for one hook", []v1alpha1.LiftedHold{but(func(l *v1alpha1.LiftedHold) { l.Hook = "BeforeClusterDelete" })}, waits, "waits, quota", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			var asked atomic.Int32
			f.registerREST(t, func(w http.ResponseWriter, r *http.Request) {
				answer := quota
				if path.Base(r.URL.Path) == "a" {
					asked.Add(1)
					answer = tc.answer
				}
				_, _ = io.WriteString(w, answer)
			}, handlerOf("a", "BeforeClusterCreate", hook.Fail), handlerOf("b", "BeforeClusterCreate", hook.Fail))
			if tc.lifted != nil {
				f.registry.SetPolicies("acme", lifting(t, tc.lifted...))
			}
			body := strings.Replace(createBody, `"name":"c"`, `"name":"c","uid":"u"`, 1)
			overREST := readBoth[runtimehooksv1.BeforeClusterCreateResponse](t, f.post(t, createPath, body))
			overGRPC, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{
				Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(strings.Replace(createCluster, `"name":"c"`, `"name":"c","uid":"u"`, 1))},
			})
			if err != nil {
				t.Fatal(err)
			}
			for protocol, got := range map[string]struct {
				message string
				retry   int32
			}{
				"REST": {overREST.Message, overREST.RetryAfterSeconds}, "gRPC": {overGRPC.GetMessage(), overGRPC.GetRetryAfterSeconds()},
			} {
				if got.message != tc.message || got.retry != tc.retry {
					t.Errorf("%s: %s: got %d s, %q, want %d s, %q", tc.reason, protocol, got.retry, got.message, tc.retry, tc.message)
				}
			}
			if asked.Load() != 2 {
				t.Errorf("a.acme was asked %d times, want 2", asked.Load())
			}
			var events []string
			for len(f.lifted) > 0 {
				events = append(events, <-f.lifted)
			}
			if n := strings.Count(tc.message, goesOn); len(events) != 2*n {
				t.Errorf("events: %q", events)
			}
			if tc.message == goesOn+"waits, quota" && !slices.Contains(events, "on-call lifts a.acme of n/c: waits") {
				t.Errorf("events: %q", events)
			}
		})
	}
}

// A lift of an upgrade is for one version. Work that goes on, a rule and a hook of Machines are not lifted, whatever a
// policy says.
func TestLiftHoldOfOnePassage(t *testing.T) {
	cluster := &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"c","uid":"u"}}`)}
	upgradeTo := func(version string) *hooksv1alpha1.BeforeClusterUpgradeRequest {
		return &hooksv1alpha1.BeforeClusterUpgradeRequest{Cluster: cluster, FromKubernetesVersion: "v1.33.0", ToKubernetesVersion: version}
	}
	machine := &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"m","uid":"u"},"spec":{"clusterName":"c"}}`)}
	for name, tc := range map[string]struct {
		reason   string
		hook     string
		version  string // that is lifted
		request  proto.Message
		answer   proto.Message
		inMemory bool
		lifted   bool
	}{
		"upgrade": {"the version", "BeforeClusterUpgrade", "v1.34.0", upgradeTo("v1.34.0"), &hooksv1alpha1.BeforeClusterUpgradeResponse{Status: success, RetryAfterSeconds: 5}, false, true},
		"next":    {"another version", "BeforeClusterUpgrade", "v1.34.0", upgradeTo("v1.35.0"), &hooksv1alpha1.BeforeClusterUpgradeResponse{Status: success, RetryAfterSeconds: 5}, false, false},
		"after": {
			"the version that it has", "AfterControlPlaneUpgrade", "v1.34.0", &hooksv1alpha1.AfterControlPlaneUpgradeRequest{Cluster: cluster, KubernetesVersion: "v1.34.0"},
			&hooksv1alpha1.AfterControlPlaneUpgradeResponse{Status: success, RetryAfterSeconds: 5}, false, true,
		},
		"rule": {"it is lifted by an annotation", "BeforeClusterUpgrade", "v1.34.0", upgradeTo("v1.34.0"), &hooksv1alpha1.BeforeClusterUpgradeResponse{Status: success, RetryAfterSeconds: 5}, true, false},
		"work": {
			"it goes on", "UpdateMachine", "", &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: machine, InfrastructureMachine: machine}},
			&hooksv1alpha1.UpdateMachineResponse{Status: success, RetryAfterSeconds: 5}, false, false,
		},
		"Machine": {
			"it is no Cluster", "BeforeMachineDrain", "", &machinesv1alpha1.BeforeMachineDrainRequest{Machine: machine},
			&machinesv1alpha1.BeforeMachineDrainResponse{Status: success, RetryAfterSeconds: 5}, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrationOf("acme", handlerOf("v", tc.hook, hook.Fail))
			r := registry.New()
			errs := []error{nil}
			if tc.inMemory {
				reg.InProcess, reg.ClientConfig = held{tc.answer}, registry.ClientConfig{}
				errs = r.SetLocal("HookRule", []registry.Registration{reg})
			} else {
				errs[0] = r.Apply(reg)
			}
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			r.SetReady()
			passage := policy.Passage{Handler: "v", Hook: tc.hook, Namespace: "n", Cluster: "c", UID: "u", Version: tc.version}
			r.SetPolicies("acme", registry.Policies{All: &registry.Policy{Name: "on-call", Lifted: &policy.LiftedHolds{By: "on-call", Of: []policy.Passage{passage}}}})
			d := newDispatcher(r, fixedNamespaces{}, callerFunc(func(context.Context, extension.Call) (proto.Message, error) { return proto.Clone(tc.answer), nil }))
			got, err := d.dispatch(t.Context(), hookOf(t, tc.hook), "v.acme", tc.request)
			if err != nil {
				t.Fatal(err)
			}
			if isHeld := got.(outcome.Blocking).GetRetryAfterSeconds() > 0; isHeld == tc.lifted {
				t.Errorf("%s: got %v", tc.reason, got)
			}
		})
	}
}

// held is the answer of a registration without a server.
type held struct{ proto.Message }

func (held) Kind() string { return "HookRule" }

func (h held) Answer(context.Context, proto.Message, policy.Guard) (proto.Message, error) {
	return proto.Clone(h.Message), nil
}
