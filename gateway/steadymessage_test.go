// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// asking calls one replica after the other about a Cluster, as Cluster API does, and one that has been started anew
// from the middle on. It returns how often the text changes.
func asking(t *testing.T, policies registry.Policies, says func(call int64) string) (changes int, last string, replicas []*fixture) {
	t.Helper()
	var calls atomic.Int64
	replica := func() *fixture {
		f := newFixture(t, nil)
		f.register(t, "BeforeClusterCreate", hook.Fail, 20*time.Second, func(w http.ResponseWriter, _ *http.Request) {
			n := calls.Add(1)
			_, _ = fmt.Fprintf(w, `{"status":"Success","message":%q,"retryAfterSeconds":%d}`, says(n), n)
		})
		f.registry.SetPolicies("acme", policies)
		return f
	}
	replicas = []*fixture{replica(), replica()}
	const asked = 24
	for i := range asked {
		if i == asked/2 {
			replicas[1] = replica()
		}
		body := strings.Replace(createBody, `"name":"c"`, fmt.Sprintf(`"name":"c","resourceVersion":"%d"`, i), 1)
		text := readBoth[runtimehooksv1.BeforeClusterCreateResponse](t, replicas[i%2].post(t, createPath, body)).Message
		if i > 0 && text != last {
			changes++
		}
		last = text
	}
	return changes, last, replicas
}

// With messages: Steady, a time, an id or a counter changes no text, whichever of two replicas is asked and whatever was
// restarted; progress does, and what a handler says otherwise.
func TestSteadyMessages(t *testing.T) {
	at := time.Date(2026, 11, 28, 22, 22, 0, 0, time.UTC)
	changing := func(n int64) string {
		return fmt.Sprintf("waits since %s (attempt %d, %s, request %08x-0000-4000-8000-000000000000)",
			at.Add(time.Duration(n)*time.Second).Format(time.RFC3339), n, time.Duration(n)*time.Second, n)
	}
	const masked = "waits since <time> (attempt <number>, <duration>, request <id>)"
	steadily := registry.Policies{All: &policy.Policy{Name: "calm", Messages: policy.Steady}}
	for name, tc := range map[string]struct {
		reason   string
		policies registry.Policies
		says     func(n int64) string
		changes  int
		last     string
		unsteady string
	}{
		"no policy": {
			"messages are passed on, and reported", registry.Policies{}, changing, 23, changing(24),
			"the message about Cluster n/c changes from call to call, though the answer does not: " +
				"correct the extension, or mask the changes with messages: Steady in an ExtensionPolicy",
		},
		"steady":         {"nothing changes", steadily, changing, 0, masked, ""},
		"of one handler": {"it has the field of its own policy", registry.Policies{All: &policy.Policy{Messages: policy.Verbatim}, Handlers: map[string]*policy.Policy{"v": steadily.All}}, changing, 0, masked, ""},
		"not of one":     {"it has the field of its own policy", registry.Policies{All: steadily.All, Handlers: map[string]*policy.Policy{"v": {Messages: policy.Verbatim}}}, func(int64) string { return "at 22:22:00" }, 0, "at 22:22:00", ""},
		"progress": {
			"it is seen", steadily, func(n int64) string {
				return fmt.Sprintf("%d of 3 done at %s", n/8, at.Add(time.Duration(n)*time.Hour))
			}, 3,
			"3 of 3 done at <time>", "",
		},
		"order": {
			"no policy makes it steady", steadily, func(n int64) string { return []string{"a, b", "b, a", "a"}[n%3] }, 23, "a, b",
			"the message about Cluster n/c changes from call to call, though the answer does not: " +
				"correct the extension, because messages: Steady does not mask these changes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes, last, replicas := asking(t, tc.policies, tc.says)
			if changes != tc.changes || last != tc.last {
				t.Errorf("%s: the text has changed %d times, and is %q; want %d, %q", tc.reason, changes, last, tc.changes, tc.last)
			}
			if got := unsteadyOf(t, replicas[0]); got != tc.unsteady {
				t.Errorf("the status says %q, want %q", got, tc.unsteady)
			}
			n, err := testutil.GatherAndCount(replicas[0].metrics, "hookgate_handler_changed_messages_total")
			if counts := tc.changes > limits.UnsteadyMessages; err != nil || (n == 1) != counts {
				t.Errorf("%d series count changes: %v", n, err)
			}
		})
	}
}

// unsteadyOf returns what the status says about the messages of v.acme.
func unsteadyOf(t *testing.T, f *fixture) string {
	t.Helper()
	for _, h := range statusOf(t, f).Extensions[0].Handlers {
		if h.Name == "v.acme" {
			return h.Unsteady
		}
	}
	t.Fatal("no handler")
	return ""
}

func statusOf(t *testing.T, f *fixture) *status.Gateway {
	t.Helper()
	r := observe.Reporter{Catalog: allHooks, Registry: f.registry, Observer: f.observer, Namespaces: fixedNamespaces{}}
	return r.Gateway()
}

// What is masked of several handlers is merged; a Failure is masked, too; the steps of a chain have their own policies,
// and gRPC callers see the same.
func TestSteadyMessagesAreMerged(t *testing.T) {
	f := newFixture(t, nil)
	var refuses atomic.Bool
	f.registerREST(t, func(w http.ResponseWriter, r *http.Request) {
		name, state := path.Base(r.URL.Path), "Success"
		if name == "b" && refuses.Load() {
			state = "Failure"
		}
		_, _ = io.WriteString(w, `{"status":"`+state+`","message":"`+name+` at 22:22:00","retryAfterSeconds":5}`)
	}, handlerOf("a", "BeforeClusterCreate", hook.Fail), handlerOf("b", "BeforeClusterCreate", hook.Fail))
	f.registry.SetPolicies("acme", registry.Policies{Handlers: map[string]*policy.Policy{"b": {Name: "calm", Messages: policy.Steady}}})
	for _, tc := range []struct {
		refuses bool
		want    string
	}{
		{false, "a at 22:22:00, b at <time>"}, {true, `handler "b.acme": b at <time>`},
	} {
		refuses.Store(tc.refuses)
		overREST := readBoth[runtimehooksv1.BeforeClusterCreateResponse](t, f.post(t, createPath, createBody)).Message
		overGRPC, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{
			Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{tc.want, tc.want}, []string{overREST, overGRPC.GetMessage()}); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// An explanation says that messages are masked, and that a hold would be lifted.
func TestExplainMessages(t *testing.T) {
	r := filled(t, registrationOf("acme", handlerOf("a", "BeforeClusterCreate", hook.Fail), handlerOf("b", "BeforeClusterCreate", hook.Fail)))
	passage := policy.Passage{Handler: "a", Hook: "BeforeClusterCreate", Namespace: "n", Cluster: "c", UID: "u"}
	r.SetPolicies("acme", registry.Policies{
		All:      &policy.Policy{Name: "on-call", Lifted: &policy.LiftedHolds{By: "on-call", Of: []policy.Passage{passage}}},
		Handlers: map[string]*policy.Policy{"b": {Name: "calm", Messages: policy.Steady}},
	})
	d := newDispatcher(r, fixedNamespaces{}, answers{})
	h := hookOf(t, "BeforeClusterCreate")
	got := map[string][2]string{}
	x, err := d.Explain(t.Context(), Request{Hook: h, Message: &hooksv1alpha1.BeforeClusterCreateRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"c","uid":"u"}}`)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range x.Handlers {
		got[h.Name] = [2]string{h.Messages, h.LiftedBy}
	}
	if diff := cmp.Diff(map[string][2]string{"a.acme": {"", "on-call"}, "b.acme": {"Steady", ""}}, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Without messages: Steady, the link costs a comparison.
func BenchmarkSteadyMessage(b *testing.B) {
	answer := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: 5}
	next := func(context.Context, extension.Call) (extension.Result, error) {
		return extension.Result{Response: answer}, nil
	}
	for name, tc := range map[string]struct {
		policy  *policy.Policy
		message string
	}{
		"NoPolicy":  {nil, "waits since 2026-11-28T22:22:00Z"},
		"Verbatim":  {&policy.Policy{}, "waits since 2026-11-28T22:22:00Z"},
		"NoMessage": {&policy.Policy{Messages: policy.Steady}, ""},
		"Steady":    {&policy.Policy{Messages: policy.Steady}, "waits since 2026-11-28T22:22:00Z"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			caller, c := steadyMessage(next), extension.Call{Handler: &registry.Entry{Policy: tc.policy}}
			for b.Loop() {
				answer.Message = tc.message
				if _, err := caller(b.Context(), c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
