// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/registry"
)

const policies = "/apis/hookgate.dev/v1alpha1/extensionpolicies/"

// policy creates or changes an ExtensionPolicy.
func (s *apiServer) policy(name string, change func(*v1alpha1.ExtensionPolicySpec)) {
	var p *v1alpha1.ExtensionPolicy
	if !s.read(policies+name, &p) {
		p = &v1alpha1.ExtensionPolicy{TypeMeta: metav1.TypeMeta{APIVersion: "hookgate.dev/v1alpha1", Kind: "ExtensionPolicy"}}
		p.Name, p.UID, p.Spec.TargetRef.Name = name, "1", "acme"
		p.Spec.FailurePolicy = v1alpha1.FailurePolicyIgnore
	}
	if change != nil {
		change(&p.Spec)
	}
	s.put(policies+name, p)
}

// awaitAccepted waits until the condition Accepted of a policy is this one, for its generation.
func (s *apiServer) awaitAccepted(t testing.TB, name, reason, message string) {
	t.Helper()
	eventually(t, name+" is "+reason+": "+message, func() (string, bool) {
		var p *v1alpha1.ExtensionPolicy
		s.read(policies+name, &p)
		c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.AcceptedCondition)
		if c == nil {
			return "no condition", false
		}
		return c.Reason + ": " + c.Message, c.Reason == reason && strings.HasPrefix(c.Message, message) &&
			c.ObservedGeneration == p.Generation
	})
}

func TestPolicyTakesEffect(t *testing.T) {
	api := newAPIServer(t)
	losses := convert.NewLosses(nil)
	r := start(t, api, func(c *controllers.Config) { c.Losses = losses })
	r.extensions.serve(named("a", "v1beta1"))
	api.policy("p", nil)
	api.awaitAccepted(t, "p", v1alpha1.TargetNotFoundReason, `there is no ExtensionConfig, HookRule or HookJob "acme"`)
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	api.awaitAccepted(t, "p", v1alpha1.AcceptedReason, `In effect for ExtensionConfig "acme"`)
	if e, _ := r.registry.Snapshot().Handler("a.acme"); e.Handler.FailurePolicy != hook.Ignore {
		t.Errorf("failure policy is %s", e.Handler.FailurePolicy)
	}
	losses.Record("acme", "a", []string{"cluster.spec.a"})
	api.awaitLossy(t, "acme", "a (v1beta1) cluster.spec.a")

	// A mistake leaves in effect what was there before.
	marked := len(api.written())
	api.policy("p", func(s *v1alpha1.ExtensionPolicySpec) {
		s.MatchConditions = []v1alpha1.MatchCondition{{Name: "x", Expression: "("}}
	})
	api.awaitAccepted(t, "p", v1alpha1.InvalidReason, "spec.matchConditions[0]")
	if listed := objectsOf(r.source).Policies; len(listed) != 1 || listed[0].Target != "acme" || listed[0].Reason != v1alpha1.InvalidReason {
		t.Errorf("the status lists %+v", listed)
	}
	if e, _ := r.registry.Snapshot().Handler("a.acme"); e.Handler.FailurePolicy != hook.Ignore {
		t.Errorf("with a mistake in it, failure policy is %s", e.Handler.FailurePolicy)
	}
	expectWrites(t, api, marked, "PATCH p/status 200")

	// Another protocol makes it discover again, and another version of objects has other losses.
	asked := len(r.extensions.calls())
	api.policy("p", func(s *v1alpha1.ExtensionPolicySpec) { s.MatchConditions, s.Protocol = nil, v1alpha1.ProtocolGRPC })
	eventually(t, "the extension is asked with gRPC", func() (string, bool) {
		calls := r.extensions.calls()[asked:]
		return fmt.Sprint(calls), len(calls) > 0 && calls[len(calls)-1].Protocol == registry.GRPC
	})
	api.policy("p", func(s *v1alpha1.ExtensionPolicySpec) { s.ClusterAPIVersion = v1alpha1.ClusterAPIVersionV1Beta2 })
	api.awaitNone(t, "acme", lossy)
	losses.Record("acme", "a", []string{"cluster.spec.b"})
	api.awaitLossy(t, "acme", "a (v1beta2) cluster.spec.b")
	api.remove(policies + "p")
	api.awaitNone(t, "acme", lossy)
	eventually(t, "the failure policy is the extension's", func() (string, bool) {
		e, _ := r.registry.Snapshot().Handler("a.acme")
		return string(e.Handler.FailurePolicy), e.Handler.FailurePolicy == hook.Fail
	})
}

// A policy for a handler waits for its ExtensionConfig, its discovery, and the handler.
func TestPolicyWaitsForItsHandler(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, func(c *controllers.Config) { c.Resync = 10 * time.Millisecond })
	const soon = "; the policy takes effect as soon as its target appears"
	api.policy("p", func(s *v1alpha1.ExtensionPolicySpec) { s.TargetRef.Handler = "b" })
	api.awaitAccepted(t, "p", v1alpha1.TargetNotFoundReason, `there is no ExtensionConfig, HookRule or HookJob "acme"`+soon)
	r.extensions.fail("connection refused")
	api.register("acme", nil)
	api.awaitAccepted(t, "p", v1alpha1.TargetNotFoundReason, `ExtensionConfig "acme" has not been discovered yet`+soon)
	r.extensions.serve(named("a", ""))
	api.awaitAccepted(t, "p", v1alpha1.TargetNotFoundReason, `ExtensionConfig "acme" has no handler "b"`+soon)
	r.extensions.serve(named("a", ""), named("b", ""))
	api.awaitAccepted(t, "p", v1alpha1.AcceptedReason, `In effect for handler "b" of ExtensionConfig "acme"`)
	eventually(t, "it is for that handler alone", func() (string, bool) {
		a, _ := r.registry.Snapshot().Handler("a.acme")
		b, _ := r.registry.Snapshot().Handler("b.acme")
		return "", a.Handler.FailurePolicy == hook.Fail && b.Handler.FailurePolicy == hook.Ignore
	})
}

// A policy that lifts a hold of a handler that does not exist says so, and the rest of it is in effect.
func TestPolicyLiftsHoldsOfItsHandlers(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, func(c *controllers.Config) { c.Resync = 10 * time.Millisecond })
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	api.policy("p", func(s *v1alpha1.ExtensionPolicySpec) {
		s.LiftedHolds = []v1alpha1.LiftedHold{{Handler: "b.acme", Hook: "BeforeClusterCreate", Cluster: "n/c", UID: "u"}}
	})
	api.awaitAccepted(t, "p", v1alpha1.TargetNotFoundReason,
		`In effect for ExtensionConfig "acme", except for spec.liftedHolds[0]: ExtensionConfig "acme" has no handler "b" for the hook BeforeClusterCreate`)
	if a, _ := r.registry.Snapshot().Handler("a.acme"); a.Handler.FailurePolicy != hook.Ignore {
		t.Error("the rest of the policy is not in effect")
	}
	r.extensions.serve(named("a", ""), named("b", ""))
	api.awaitAccepted(t, "p", v1alpha1.AcceptedReason, `In effect for ExtensionConfig "acme"`)
}

// A replica that is ready has the policies, so that no call uses what an operator overrides. It starts often, because
// policies that come a moment later might still be in time.
func TestPoliciesHoldFromTheStart(t *testing.T) {
	api := newAPIServer(t)
	first := start(t, api, nil)
	api.register("acme", nil)
	api.policy("p", nil)
	api.awaitAccepted(t, "p", v1alpha1.AcceptedReason, "")
	api.awaitDiscovered(t, "acme")
	first.stop()
	marked := len(api.written())
	for i := range 20 {
		r := start(t, api, func(c *controllers.Config) { c.ReadOnly = i%2 == 1 })
		if e, _ := r.registry.Snapshot().Handler("a.acme"); e == nil || e.Handler.FailurePolicy != hook.Ignore {
			t.Fatalf("start %d: when it is ready, the handler is %+v", i, e)
		}
		r.stop()
	}
	expectWrites(t, api, marked)
}

func TestPoliciesInConflict(t *testing.T) {
	api := newAPIServer(t)
	start(t, api, nil)
	api.register("acme", nil)
	api.policy("first", nil)
	api.awaitAccepted(t, "first", v1alpha1.AcceptedReason, "")
	api.policy("second", nil)
	api.awaitAccepted(t, "second", v1alpha1.ConflictedReason, `ExtensionPolicy "first", which`)
	api.remove(policies + "first")
	api.awaitAccepted(t, "second", v1alpha1.AcceptedReason, "")
}

func TestFollowerWritesNoStatusOfPolicies(t *testing.T) {
	api := newAPIServer(t)
	r := start(t, api, following(api))
	api.policy("p", nil)
	r.awaitLog(t, "policy is not accepted")
	api.register("acme", nil)
	r.awaitLog(t, "policy is accepted")
	if listed := objectsOf(r.source).Policies; len(listed) != 1 || !listed[0].Accepted {
		t.Errorf("its status lists %+v", listed)
	}
	expectWrites(t, api, 0)
	api.lease("")
	api.awaitAccepted(t, "p", v1alpha1.AcceptedReason, "") // the next leader does
}

// A status that was decided before somebody else wrote the object is refused, and decided again, until the watch has
// brought what they wrote.
func TestStaleStatusIsAConflict(t *testing.T) {
	for name, write := range map[string]func(*apiServer, string){
		"acme": func(api *apiServer, value string) {
			api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Annotations["written"] = value })
		},
		"p": func(api *apiServer, value string) {
			api.policy("p", func(s *v1alpha1.ExtensionPolicySpec) { s.TargetRef.Name = value })
		},
	} {
		api := newAPIServer(t)
		var once atomic.Bool
		api.before(func(method, path string) error {
			if method == http.MethodPatch && strings.HasSuffix(path, "/"+name+"/status") && !once.Swap(true) {
				write(api, "meanwhile")
			}
			return nil
		})
		start(t, api, nil)
		write(api, "first")
		eventually(t, "the status of "+name+" is written", func() (string, bool) {
			list := requests(api.written())
			return fmt.Sprint(list), slices.Contains(list, "PATCH "+name+"/status 200")
		})
		want := []string{"PATCH " + name + "/status 409", "PATCH " + name + "/status 200"}
		if name == "acme" { // where it was discovered
			want = slices.Insert(want, 0, "PATCH acme 200")
		}
		if diff := cmp.Diff(want, slices.Compact(requests(api.written()))); diff != "" {
			t.Errorf("writes (-want +got):\n%s", diff)
		}
	}
}

func TestRefusedStatusOfAPolicyIsTriedAgain(t *testing.T) {
	api := newAPIServer(t)
	var refused atomic.Bool
	api.before(func(method, path string) error {
		if method == http.MethodPatch && path == policies+"p/status" && !refused.Swap(true) {
			return apierrors.NewInternalError(errors.New("etcd is away"))
		}
		return nil
	})
	start(t, api, nil)
	api.policy("p", nil)
	api.awaitAccepted(t, "p", v1alpha1.TargetNotFoundReason, "")
	expectWrites(t, api, 0, "PATCH p/status 500", "PATCH p/status 200")
}

// objectsOf returns a status with the objects of a source.
func objectsOf(s *controllers.Source) *status.Gateway {
	g := &status.Gateway{}
	s.Objects(g)
	return g
}
