// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/admission"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// busy is an extension that answers a call when it is told to.
type busy struct{ answers chan error }

func (b *busy) Call(ctx context.Context, c extension.Call) (proto.Message, error) {
	if c.Handler.Registration.Name != "a" {
		return outcome.Success(c.Hook), nil
	}
	select {
	case err := <-b.answers:
		if err != nil {
			return nil, err
		}
		return outcome.Success(c.Hook), nil
	case <-ctx.Done():
		return nil, hook.Errorf(hook.Timeout, "no answer")
	}
}

// limited returns a dispatcher for the extension a with 2 calls in flight and 3 waiting, and for an idle one, b.
func limited(t *testing.T, failurePolicy hook.FailurePolicy, settings *circuit.Settings) (*Dispatcher, *busy) {
	t.Helper()
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", failurePolicy)), registrationOf("b", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
	r.SetPolicies("a", registry.Policies{
		// A policy of its own for a handler does not lift the limits of the extension.
		All:      &policy.Policy{Limits: &admission.Limits{MaxInFlight: 2, MaxWaiting: 3}, Circuit: settings},
		Handlers: map[string]*policy.Policy{"v": {Name: "own"}},
	})
	b := &busy{answers: make(chan error)}
	return newObservedDispatcher(newObserved(r), r, b), b
}

// together makes n calls at the same time, waits until they are under way, and returns where their errors come.
func together(t *testing.T, d *Dispatcher, n int) <-chan error {
	t.Helper()
	errs := make(chan error, n)
	for range n {
		go func() {
			_, err := create(t, d, "v.a")
			errs <- err
		}()
	}
	synctest.Wait()
	return errs
}

func TestCallsBeyondTheLimitsFail(t *testing.T) {
	for _, failurePolicy := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
		t.Run(string(failurePolicy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, b := limited(t, failurePolicy, nil)
				errs := together(t, d, 5)
				if s := d.config.Observer.Extensions().Known("a").Gate.Status(); s != (admission.Status{InFlight: 2, Waiting: 3}) {
					t.Fatalf("at the limit: %+v", s)
				}
				for range 60 { // refusals do not open the circuit
					_, err := create(t, d, "v.a")
					want := `handler "v.a": extension is busy: it has 2 calls in flight and 3 waiting, and its limits allow no more`
					switch {
					case failurePolicy == hook.Ignore && err == nil:
					case failurePolicy == hook.Fail && hook.KindOf(err) == hook.Unreachable && err.Error() == want && outcome.ErrorOf(err).RetryAfter == time.Second:
					default:
						t.Fatalf("beyond the limit: got %v", err)
					}
				}
				if _, err := create(t, d, "v.b"); err != nil {
					t.Errorf("the other extension: %v", err)
				}
				for range 5 {
					b.answers <- nil
					if err := <-errs; err != nil {
						t.Errorf("a call within the limits: %v", err)
					}
				}
				if s := d.config.Observer.Extensions().Known("a").Gate.Status(); s.InFlight != 0 || s.Waiting != 0 || s.Refused != 60 {
					t.Errorf("afterwards: %+v", s)
				}
			})
		})
	}
}

// Waiting counts against the deadline, and a call that had only to wait does not open the circuit.
func TestWaitingCountsAgainstTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := circuit.Default()
		never.ConsecutiveFailures = 3 // as many as wait
		d, _ := limited(t, hook.Fail, &never)
		began := time.Now()
		errs := together(t, d, 5)
		for range 5 {
			err := <-errs
			if want := `handler "v.a": no answer within its timeout of 10s`; hook.KindOf(err) != hook.Timeout || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("took %s, want the timeout", took)
		}
		if s, _ := d.config.Observer.Extensions().Circuit("a"); s.State != circuit.Closed {
			t.Errorf("the circuit is %+v: two calls were sent, and three were not", s)
		}
	})
}

// Calls do not wait for an extension that turns out to be down. One of them is sent nevertheless: its turn comes when the
// call that fails ends, before that has opened the circuit.
func TestWaitingEndsWhenTheCircuitOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := circuit.Default()
		soon.ConsecutiveFailures = 1
		d, b := limited(t, hook.Fail, &soon)
		errs := together(t, d, 5)
		b.answers <- hook.Errorf(hook.Unreachable, "connection refused")
		synctest.Wait()
		if s := d.config.Observer.Extensions().Known("a").Gate.Status(); s.InFlight != 2 || s.Waiting != 0 {
			t.Errorf("got %+v", s)
		}
		got := map[string]int{}
		for range 3 {
			got[(<-errs).Error()]++
		}
		want := map[string]int{
			`handler "v.a": connection refused`:                         1,
			`handler "v.a": ` + fmt.Sprintf(circuitText, "Unreachable"): 2,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		for range 2 {
			b.answers <- nil
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
}

// Limits that a policy changes apply to the next call.
func TestLimitsOfAPolicyThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, b := limited(t, hook.Fail, nil)
		r := d.config.Registry.(*registry.Registry)
		errs := together(t, d, 5)
		r.SetPolicies("a", registry.Policies{})
		more := together(t, d, 10)
		if s := d.config.Observer.Extensions().Known("a").Gate.Status(); s.InFlight != 15 || s.Waiting != 0 {
			t.Errorf("got %+v", s)
		}
		for range 15 {
			b.answers <- nil
			select {
			case err := <-errs:
				if err != nil {
					t.Error(err)
				}
			case err := <-more:
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// The metrics have each extension that was called, for as long as it is registered.
func TestMetricsOfExtensions(t *testing.T) {
	r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)), registrationOf("idle", handlerOf("v", "BeforeClusterDelete", hook.Fail)))
	o := newObserved(r)
	d := newObservedDispatcher(o, r, answers{"v.a": func(_ context.Context, c extension.Call) (proto.Message, error) { return outcome.Success(c.Hook), nil }})
	if _, err := create(t, d, "v.a"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{
		"hookgate_circuit_state": 1, "hookgate_circuit_transitions_total": 3, "hookgate_extension_calls_in_flight": 1,
		"hookgate_extension_calls_waiting": 1, "hookgate_extension_calls_refused_total": 1,
	} {
		if got := count(t, o.series, name); got != want {
			t.Errorf("%s: %d series, want %d", name, got, want)
		}
	}
	r.Remove("a")
	if got := count(t, o.series, seriesOfExtensions...); got != 0 {
		t.Errorf("%d series are left", got)
	}
}
