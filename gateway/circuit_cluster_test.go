// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/calls/protect"
	"github.com/hookgate/hookgate/internal/seeing/observe"
)

// clusters is a handler that fails for some Clusters, and calls to it.
type clusters struct {
	*testing.T
	extensions *extensionstate.States
	link       extension.Caller
	failing    map[string]error // by name; empty for calls that are about none
	connected  bool
	calls      int // that reached the handler
	settings   circuit.Settings
}

func newClusters(t *testing.T, failing ...string) *clusters {
	t.Helper()
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail),
		handlerOf("w", "BeforeClusterCreate", hook.Fail), handlerOf("p", "GeneratePatches", hook.Fail)))
	f := &clusters{
		T: t, extensions: extensionstate.New(r), failing: map[string]error{}, connected: true, settings: circuit.Default(),
	}
	for _, name := range failing {
		f.failing[name] = hook.Errorf(hook.BadResponse, "answered 500")
	}
	f.link = protect.Circuits(f.extensions, (*observe.Observer)(nil))(func(_ context.Context, c extension.Call) (extension.Result, error) {
		f.calls++
		_, name := c.Cluster()
		if err := f.failing[name]; err != nil {
			return extension.Result{Connected: f.connected}, err
		}
		return extension.Result{Response: outcome.Success(c.Hook), Connected: true}, nil
	})
	return f
}

func (f *clusters) request(t *testing.T, handler string, request proto.Message, hookName string) error {
	t.Helper()
	c := callTo(t, hookName)
	c.Handler.Name, c.Request = handler, request
	c.Handler.OfExtension = &policy.Policy{Circuit: &f.settings}
	_, err := f.link(t.Context(), c)
	return err
}

func (f *clusters) call(name string) error {
	f.Helper()
	request := &hooksv1alpha1.BeforeClusterCreateRequest{}
	if name != "" {
		request.Cluster = &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"metadata":{"namespace":"n","name":%q}}`, name)}
	}
	return f.request(f.T, "v.a", request, "BeforeClusterCreate")
}

// isRefused reports whether the calls of a Cluster are refused, in which case nothing has reached the handler.
func (f *clusters) isRefused(name string) bool {
	f.Helper()
	before := f.calls
	err := f.call(name)
	refused := hook.KindOf(err) == hook.Unreachable && strings.Contains(err.Error(), "circuit is open")
	if refused != (f.calls == before) {
		f.Errorf("Cluster %q: %v, and %d calls reached the handler", name, err, f.calls-before)
	}
	return refused
}

// The failures of one Cluster refuse its calls, and no others, until a probe succeeds.
func TestOneClusterFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusters(t, "bad")
		for range limits.DefaultFailuresInARow {
			if f.isRefused("bad") {
				t.Fatal("it is refused too soon")
			}
		}
		const want = `circuit is open: calls to the handler for Cluster "n/bad" fail with BadResponse; they are sent again once a probe succeeds`
		if err := f.call("bad"); hook.KindOf(err) != hook.Unreachable || err.Error() != want {
			t.Fatalf("got %v, want %s", err, want)
		}
		for _, other := range []string{"good", "", "bad2"} {
			if err := f.call(other); err != nil {
				t.Errorf("Cluster %q: %v", other, err)
			}
		}
		if status, handler := f.extensions.Circuit("a"); status.State != circuit.Closed {
			t.Errorf("got %+v of %q", status, handler)
		}
		if got := f.extensions.Known("a").RefusedClusters("v.a"); len(got) != 1 || got[0] != "n/bad" {
			t.Errorf("refused are %q", got)
		}
		// Its probes fail for a day, and concern nobody else.
		before := f.calls
		for range 24 * 60 {
			time.Sleep(time.Minute)
			if err := f.call("bad"); err == nil || err.Error() != want {
				t.Fatalf("a probe got %v", err)
			}
		}
		if n := f.calls - before; n < 1000 {
			t.Errorf("%d probes in a day", n)
		}
		if f.isRefused("good") {
			t.Error("the probes of one Cluster opened the circuit for others")
		}
		delete(f.failing, "bad")
		time.Sleep(2 * time.Minute)
		if err := f.call("bad"); err != nil {
			t.Errorf("when it is well again: %v", err)
		}
		if got := f.extensions.Known("a").RefusedClusters("v.a"); len(got) != 0 || f.isRefused("bad") {
			t.Errorf("refused are %q", got)
		}
	})
}

// Which failures open the circuit of a handler: those of several Clusters, and those of calls that are about none.
func TestFailuresOfSeveralClusters(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		calls  []string // in turn; those whose names begin with ok succeed
		times  int
		in     int // failures in a row that open it
		opens  bool
	}{
		"Each":       {"five Clusters", []string{"a", "b", "c", "d", "e"}, 1, 5, true},
		"Two":        {"two in turn", []string{"a", "b"}, 3, 5, true},
		"None":       {"it is about none", []string{""}, 5, 5, true},
		"Mixed":      {"one Cluster, and calls about none", []string{"a", "", "", "", ""}, 1, 5, true},
		"One":        {"one Cluster alone", []string{"a"}, 500, 5, false},
		"OneOfMany":  {"others succeed", []string{"a", "okb", "okc"}, 500, 5, false},
		"OneAndOnce": {"another failed once", []string{"a", "a", "a", "a", "a", "b"}, 1, 5, false},
		"Successes":  {"a success starts over", []string{"a", "b", "c", "d", "ok"}, 3, 5, false},
		"First":      {"the least that can be set is still of one Cluster", []string{"a"}, 3, 1, false},
		"Second":     {"the least that can be set, of two", []string{"a", "b"}, 1, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newClusters(t, "", "a", "b", "c", "d", "e")
				f.settings.ConsecutiveFailures = tc.in
				for range tc.times {
					for _, cluster := range tc.calls {
						_ = f.call(cluster)
					}
				}
				if got := f.isRefused("another"); got != tc.opens {
					t.Errorf("%s: another Cluster is refused: %t", tc.reason, got)
				}
			})
		})
	}
}

// While the circuit of a handler is open, a Cluster that fails by itself does not keep the others out with its probes.
func TestProbesOfABadCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusters(t, "", "bad")
		for range 5 {
			_ = f.call("bad")
		}
		for range 5 {
			_ = f.call("")
		}
		if !f.isRefused("good") {
			t.Fatal("the circuit of the handler is closed")
		}
		time.Sleep(2 * limits.DefaultOpen)
		_ = f.call("bad") // a probe of both circuits
		if f.isRefused("good") || f.isRefused("other") {
			t.Error("others are refused")
		}
		if !f.isRefused("bad") {
			t.Error("the bad one is not")
		}
	})
}

// Every kind of failure that opens a circuit is a Cluster's, except those that say that the server is gone.
func TestKindsOfFailuresOfOneCluster(t *testing.T) {
	for _, tc := range []struct {
		kind             hook.Kind
		connected, isOwn bool
	}{
		{hook.BadResponse, true, true},
		{hook.Timeout, true, true},
		{hook.Unreachable, true, true}, // its connections break
		{hook.Unreachable, false, false},
		{hook.Timeout, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newClusters(t)
			f.connected, f.failing["bad"] = tc.connected, hook.Errorf(tc.kind, "no")
			for range 6 {
				_ = f.call("bad")
			}
			if got := f.isRefused("good"); got == tc.isOwn {
				t.Errorf("%s, connected %t: others are refused: %t", tc.kind, tc.connected, got)
			}
		})
	}
}

// The connections of one Cluster's calls break at two handlers in turn: the server is there for all others.
func TestConnectionsOfOneClusterBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newClusters(t)
		f.failing["c"] = hook.Errorf(hook.Unreachable, "connection reset")
		for i := range 20 {
			_ = f.request(t, []string{"v.a", "w.a"}[i%2], &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")},
				"BeforeClusterCreate")
		}
		if s, handler := f.extensions.Circuit("a"); s.State != circuit.Closed {
			t.Errorf("got %+v of %q", s, handler)
		}
	})
}

// A request of each category of hooks has its Cluster.
func TestClustersOfAllHooks(t *testing.T) {
	raw := func(format string, args ...any) *hooksv1alpha1.RawExtension {
		return &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, format, args...)}
	}
	for hookName, request := range map[string]func(name string) proto.Message{
		"GeneratePatches": func(name string) proto.Message {
			return &hooksv1alpha1.GeneratePatchesRequest{Variables: []*hooksv1alpha1.Variable{{
				Name: "builtin", Value: &hooksv1alpha1.JSON{Raw: raw(`{"cluster":{"namespace":"n","name":%q}}`, name).GetRaw()},
			}}}
		},
		"CanUpdateMachine": func(name string) proto.Message {
			return &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{
				Machine: raw(`{"metadata":{"namespace":"n","name":"m"},"spec":{"clusterName":%q}}`, name),
			}}
		},
		"ReconcileMachine": func(name string) proto.Message {
			return &infrastructurev1alpha1.ReconcileMachineRequest{Subject: &infrastructurev1alpha1.Subject{Namespace: "n", ClusterName: name}}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newClusters(t, "bad")
			call := func(name string) error {
				c := callTo(t, "BeforeClusterCreate")
				c.Request = nil
				c.Partial = request(name)
				_, err := f.link(t.Context(), c)
				return err
			}
			for range 6 {
				_ = call("bad")
			}
			if err := call("good"); err != nil {
				t.Errorf("%s: %v", hookName, err)
			}
			if err := call("bad"); hook.KindOf(err) != hook.Unreachable {
				t.Errorf("%s: got %v", hookName, err)
			}
		})
	}
}
