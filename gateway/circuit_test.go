// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/protect"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

const (
	circuitText        = `circuit is open: calls to the extension fail with %s; they are sent again once a probe succeeds`
	clusterCircuitText = `circuit is open: calls to the handler for Cluster "n/c" fail with %s; they are sent again once a probe succeeds`
	handlerCircuitText = `circuit is open: calls to the handler fail with %s; they are sent again once a probe succeeds`
)

// server is an extension whose next answers are set.
type server struct {
	err   error
	calls int
}

func (s *server) Call(_ context.Context, c extension.Call) (proto.Message, error) {
	s.calls++
	if s.err != nil {
		return nil, s.err
	}
	return outcome.Success(c.Hook), nil
}

func create(t *testing.T, d *Dispatcher, handler string) (proto.Message, error) {
	t.Helper()
	return d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), handler,
		&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
}

// Of 60 calls to an extension that answers 500, those reach it that open the circuit, and the failure policy applies to
// all of them.
func TestServerErrorsOpenTheCircuit(t *testing.T) {
	for _, policy := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
		t.Run(string(policy), func(t *testing.T) {
			f := newFixture(t, nil)
			served := 0
			f.register(t, "BeforeClusterCreate", policy, 30*time.Second, func(w http.ResponseWriter, _ *http.Request) {
				served++
				w.WriteHeader(http.StatusInternalServerError)
			})
			began := time.Now()
			refused := 0
			for range 60 {
				got := f.throughREST(t)
				switch {
				case policy == hook.Ignore && got.kind == "" && got.status == "Success":
				case policy == hook.Fail && got.kind == "BadResponse" && refused == 0:
				case policy == hook.Fail && got.kind == "Unreachable" &&
					strings.Contains(got.message, fmt.Sprintf(clusterCircuitText, "BadResponse")):
					refused++
				default:
					t.Fatalf("got %+v", got)
				}
			}
			// A slow machine sees probes: at most one each 0.8 s.
			if most := limits.DefaultFailuresInARow + int(time.Since(began)/(800*time.Millisecond)); served < 5 || served > most {
				t.Errorf("%d of 60 calls reached the extension, want 5 to %d", served, most)
			}
			if policy == hook.Fail && refused != 60-limits.DefaultFailuresInARow {
				t.Errorf("%d calls were refused, want %d", refused, 60-limits.DefaultFailuresInARow)
			}
			if !strings.Contains(f.log.String(), "circuit is open: calls to the handler for a Cluster are refused") {
				t.Errorf("the log lacks the circuit:\n%s", f.log)
			}
		})
	}
}

// Only errors that show that the extension does not work open its circuit: not those of calls for which there was too
// little time, or that waited for an extension which may be restarting.
func TestCircuitByKind(t *testing.T) { synctest.Test(t, circuitByKind) }

func circuitByKind(t *testing.T) {
	opening := map[hook.Kind]bool{hook.Unreachable: true, hook.Timeout: true, hook.BadResponse: true}
	for _, kind := range hook.Kinds() {
		for _, result := range []extension.Result{{}, {Inconclusive: true}, {Waited: true}, {Waited: true, Connected: true}} {
			r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
			calls := 0
			link := protect.Circuits(extensionstate.New(r), (*observe.Observer)(nil))(func(context.Context, extension.Call) (extension.Result, error) {
				calls++
				return result, hook.Errorf(kind, "no")
			})
			c := callTo(t, "BeforeClusterCreate")
			for range 60 {
				_, _ = link(t.Context(), c)
			}
			want := 60
			if opening[kind] && !result.Inconclusive && (!result.Waited || result.Connected) {
				want = limits.DefaultFailuresInARow
			}
			if calls != want {
				t.Errorf("%s, %+v: %d of 60 calls were made, want %d", kind, result, calls, want)
			}
		}
	}
}

// A Failure that the extension answers is an answer, however often.
func TestFailuresNeverOpenTheCircuit(t *testing.T) {
	d := newDispatcher(filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail))), fixedNamespaces{},
		answers{"v.a": says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: "no"})})
	for range 60 {
		m, err := create(t, d, "v.a")
		if message, refused := catalog.FailureOf(m); err != nil || !refused || message != "no" {
			t.Fatalf("got %v, %v, want the extension's Failure", m, err)
		}
	}
}

// What a handler does to its calls stops none of its siblings; what says that the server is gone stops all of them.
func TestHandlersHaveCircuits(t *testing.T) {
	const n = limits.DefaultFailuresInARow
	for name, tc := range map[string]struct {
		reason    string
		kind      hook.Kind
		connected bool
		callers   []string // the handlers that fail, in turn
		own, all  bool     // whether the circuit of the first of them is open afterwards, and that of the extension
	}{
		"Timeout":     {"it waits for something", hook.Timeout, true, []string{"v.a"}, true, false},
		"BadResponse": {"its answer cannot be used", hook.BadResponse, true, []string{"v.a"}, true, false},
		"Broken":      {"it may have panicked", hook.Unreachable, true, []string{"v.a"}, true, false},
		"BothBroken":  {"a server that resets whatever it is asked is gone", hook.Unreachable, true, []string{"v.a", "w.a"}, false, true},
		"Refused":     {"no server is there", hook.Unreachable, false, []string{"v.a"}, false, true},
		"NoHandshake": {"no server is there, and nobody says so", hook.Timeout, false, []string{"v.a"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail),
					handlerOf("w", "BeforeClusterCreate", hook.Fail), handlerOf("x", "BeforeClusterCreate", hook.Fail)))
				extensions, failing := extensionstate.New(r), true
				link := protect.Circuits(extensions, (*observe.Observer)(nil))(func(_ context.Context, c extension.Call) (extension.Result, error) {
					if failing && c.Handler.Name != "x.a" {
						return extension.Result{Connected: tc.connected}, hook.Errorf(tc.kind, "no")
					}
					return extension.Result{Response: outcome.Success(c.Hook)}, nil
				})
				call := func(handler string) error {
					c := callTo(t, "BeforeClusterCreate")
					c.Handler, _ = r.Snapshot().Handler(handler)
					_, err := link(t.Context(), c)
					return err
				}
				for i := range n + 1 { // the first connection that breaks is not held against the server
					_ = call(tc.callers[i%len(tc.callers)])
				}
				own := extensions.Known("a").HandlerCircuit("v.a").State == circuit.Open
				all := extensions.Known("a").Circuit.Status().State == circuit.Open
				if own != tc.own || all != tc.all {
					t.Fatalf("%s: the circuit of the handler is open: %t, that of the extension: %t", tc.reason, own, all)
				}
				status, handler := extensions.Circuit("a")
				if want := map[bool]string{true: "v.a"}[tc.own]; status.State != circuit.Open || handler != want {
					t.Errorf("%s: got %+v of %q, want one of %q that is open", tc.reason, status, handler, want)
				}
				if err := call("x.a"); (err != nil) != tc.all {
					t.Errorf("%s: a sibling: %v", tc.reason, err)
				}
				failing = false
				time.Sleep(2 * limits.DefaultOpen)
				for _, handler := range []string{"v.a", "w.a", "x.a"} {
					if err := call(handler); err != nil {
						t.Errorf("%s: when all is well again: %v", tc.reason, err)
					}
				}
				if status, _ := extensions.Circuit("a"); status.State != circuit.Closed {
					t.Errorf("%s: got %+v when all is well again", tc.reason, status)
				}
			})
		})
	}
}

// The circuit of a server concerns all handlers of its extension, and no other extension. Its error has one text until it closes, also
// for probes, and the cause of the last failure for the log.
func TestOpenCircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := &server{err: hook.Errorf(hook.Timeout, "no answer").WithCause(errors.New("i/o timeout"))}
		r := filled(t,
			registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail), handlerOf("w", "BeforeClusterDelete", hook.Fail)),
			registrationOf("b", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
		d := newDispatcher(r, fixedNamespaces{}, callerFunc(func(ctx context.Context, c extension.Call) (proto.Message, error) {
			if c.Handler.Registration.Name == "b" {
				return outcome.Success(c.Hook), nil
			}
			return down.Call(ctx, c)
		}))
		for range limits.DefaultFailuresInARow {
			if _, err := create(t, d, "v.a"); hook.KindOf(err) != hook.Timeout {
				t.Fatalf("got %v, want the timeout", err)
			}
		}
		var retryAfter time.Duration
		refused := func(handler string, _ proto.Message, err error) {
			t.Helper()
			var e *hook.Error
			want := fmt.Sprintf("handler %q: ", handler) + fmt.Sprintf(circuitText, "Timeout")
			if !errors.As(err, &e) || e.Kind != hook.Unreachable || e.Error() != want {
				t.Fatalf("got %v, want Unreachable: %s", err, want)
			}
			if e.Cause == nil || !strings.Contains(e.Cause.Error(), "no answer") && !strings.Contains(e.Cause.Error(), "refused") {
				t.Errorf("the cause is %v, want that of the last failure", e.Cause)
			}
			retryAfter = e.RetryAfter
		}
		m, err := create(t, d, "v.a")
		refused("v.a", m, err)
		m, err = d.dispatch(t.Context(), hookOf(t, "BeforeClusterDelete"), "w.a", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: clusterIn("n")})
		refused("w.a", m, err)
		if down.calls != limits.DefaultFailuresInARow {
			t.Errorf("%d calls reached the extension", down.calls)
		}
		if _, err := create(t, d, "v.b"); err != nil {
			t.Errorf("the other extension: %v", err)
		}
		// Both extensions have a handler of the hook, and the call fails because of the one that is down.
		m, err = create(t, d, "")
		refused("v.a", m, err)

		time.Sleep(retryAfter)
		down.err = hook.Errorf(hook.Unreachable, "connection refused")
		m, err = create(t, d, "v.a") // a probe
		refused("v.a", m, err)
		if down.calls != limits.DefaultFailuresInARow+1 {
			t.Errorf("%d calls reached the extension, want one more for the probe", down.calls)
		}
		m, err = create(t, d, "v.a")
		refused("v.a", m, err)
		time.Sleep(retryAfter)
		down.err = nil
		for range 10 {
			if _, err := create(t, d, "v.a"); err != nil {
				t.Fatalf("after a probe that succeeded: %v", err)
			}
		}
	})
}

// A probe that panics, or whose caller leaves, does not keep the circuit open for ever.
func TestProbesThatEndWithoutAnOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func() error { return hook.Errorf(hook.Unreachable, "connection refused") }
		calls := 0
		r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
		d := newDispatcher(r, fixedNamespaces{}, callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
			calls++
			return outcome.Success(c.Hook), answer()
		}))
		for range limits.DefaultFailuresInARow {
			_, _ = create(t, d, "v.a")
		}
		time.Sleep(2 * limits.DefaultOpen)
		for range 3 {
			answer = func() error { panic("out of cheese") }
			if _, err := create(t, d, "v.a"); hook.KindOf(err) != hook.Internal {
				t.Fatalf("got %v, want a panic", err)
			}
			answer = func() error { return hook.Errorf(hook.Canceled, "the caller left") }
			if _, err := create(t, d, "v.a"); hook.KindOf(err) != hook.Canceled {
				t.Fatalf("got %v, want Canceled", err)
			}
		}
		answer = func() error { return nil }
		if _, err := create(t, d, "v.a"); err != nil {
			t.Error(err)
		}
		if want := limits.DefaultFailuresInARow + 7; calls != want {
			t.Errorf("%d calls, want %d", calls, want)
		}
	})
}

// A caller that gives an extension too little time does not open its circuit, and one that waits for about as long as
// the handler's timeout does.
func TestTimeoutsOfCallers(t *testing.T) {
	for _, tc := range []struct {
		deadline time.Duration
		opens    bool
	}{
		{8 * time.Second, true}, // of which 500 ms are kept back, so that it is exactly three quarters
		{7999 * time.Millisecond, false},
		{10 * time.Second, true},
		{20 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
			calls := 0
			d := newDispatcher(r, fixedNamespaces{}, callerFunc(func(ctx context.Context, _ extension.Call) (proto.Message, error) {
				calls++
				<-ctx.Done()
				return nil, hook.Errorf(hook.Timeout, "no answer")
			}))
			for range 7 {
				ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
				_, err := d.dispatch(ctx, hookOf(t, "BeforeClusterCreate"), "v.a", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
				if err == nil {
					t.Error("no error")
				}
				cancel()
			}
			want := 7
			if tc.opens {
				want = limits.DefaultFailuresInARow
			}
			if calls != want {
				t.Errorf("with deadlines of %s, %d of 7 calls reached the extension, want %d", tc.deadline, calls, want)
			}
		})
	}
}

// States follow the registrations: they stay as long as these call the same server, and do not pile up.
func TestExtensionsFollowTheRegistry(t *testing.T) { synctest.Test(t, extensionsFollowTheRegistry) }

func extensionsFollowTheRegistry(t *testing.T) {
	r := registry.New()
	o := newObserved(r)
	down := &server{err: hook.Errorf(hook.Unreachable, "connection refused")}
	extensions := o.Extensions()
	var changes []string
	extensions.Notify(func(name string) { changes = append(changes, name) })
	d := newObservedDispatcher(o, r, down)
	apply := func(reg registry.Registration) {
		t.Helper()
		if err := r.Apply(reg); err != nil {
			t.Fatal(err)
		}
		r.SetReady()
	}
	handler := handlerOf("v", "BeforeClusterCreate", hook.Fail)
	open := func() {
		for range 7 {
			_, _ = create(t, d, "v.a")
		}
	}
	apply(registrationOf("a", handler))
	if s, _ := extensions.Circuit("a"); s.State != circuit.Closed {
		t.Errorf("got %+v before the first call", s)
	}
	open()
	if s, _ := extensions.Circuit("a"); s.State != circuit.Open || len(changes) != 1 || changes[0] != "a" {
		t.Errorf("got %+v, %v", s, changes)
	}
	if got := count(t, o.series, "hookgate_circuit_state"); got != 1 {
		t.Errorf("%d series, want 1", got)
	}
	apply(registrationOf("a", handler, handlerOf("w", "BeforeClusterDelete", hook.Fail)))
	if s, _ := extensions.Circuit("a"); s.State != circuit.Open {
		t.Errorf("a new handler made it %+v", s)
	}
	extensions.Answered("a")
	if s, _ := extensions.Circuit("a"); s.State != circuit.HalfOpen {
		t.Errorf("got %+v after an answer to discovery", s)
	}
	moved := registrationOf("a", handler)
	moved.ClientConfig.URL = "https://moved.example"
	apply(moved)
	if s, _ := extensions.Circuit("a"); s.State != circuit.Closed {
		t.Errorf("got %+v for another server", s)
	}

	old, _ := r.Snapshot().Handler("v.a")
	r.Remove("a")
	extensions.Of(old) // by a call that began before
	if got := count(t, o.series, seriesOfExtensions...); got != 0 || extensions.Known("a") != nil {
		t.Errorf("%d series of an extension that is gone", got)
	}
}

// What Cluster API asks first is what the gateway offers, so that an extension that is down does not keep Cluster API's
// manager from starting.
func TestDiscoveryAnswersWithAnOpenCircuit(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail), handlerOf("p", "GeneratePatches", hook.Fail)))
	d := newDispatcher(r, fixedNamespaces{}, &server{err: hook.Errorf(hook.Unreachable, "connection refused")})
	want := d.discover(t)
	for range 10 {
		_, _ = create(t, d, "v.a")
	}
	if got := d.discover(t); !proto.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
