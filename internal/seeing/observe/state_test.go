// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// The states and their reasons, of an extension whose first handler has a sibling that is well.
func TestStates(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	up := activity.Server{Up: at(100), Since: at(1)}
	gone := activity.Server{Up: at(90), Down: at(100), Since: at(95), Message: "connection refused"}
	back := activity.Server{Up: at(100), Down: at(90), Since: at(95)}
	open := func(kind hook.Kind, since int) circuit.Status {
		return circuit.Status{State: circuit.Open, Kind: kind, Since: at(since)}
	}
	fails := func(n int, failures, calls uint64, since, last int) activity.Seen {
		return activity.Seen{
			LastSuccess: at(10), Failures: n, FailingSince: at(since), LastFailed: at(last), Message: "no room",
			Lately: activity.Point{Calls: calls, Failures: failures},
		}
	}
	near := func(n int, slow, calls uint64) activity.Seen {
		return activity.Seen{LastSuccess: at(99), Near: n, SlowSince: at(50), Lately: activity.Point{Calls: calls, Near: slow}}
	}
	well := activity.Seen{LastSuccess: at(99), Lately: activity.Point{Calls: 100}}
	for name, tc := range map[string]struct {
		reason  string
		server  activity.Server
		circuit circuit.Status
		found   activity.Discovery
		seen    activity.Seen
		own     circuit.Status
		state   status.State
		since   int    // 0 for not known
		text    string // how the reason begins
		handler status.State
	}{
		"NeverSeen":      {reason: "nothing is known", state: status.Unknown, handler: status.Unknown},
		"NeverCalled":    {reason: "its server is there", server: up, state: status.Up, since: 1, handler: status.Unknown},
		"Up":             {reason: "its calls succeed", server: up, seen: well, state: status.Up, since: 1, handler: status.Up},
		"Gone":           {reason: "no server is there", server: gone, seen: well, state: status.Down, since: 95, text: "connection refused", handler: status.Down},
		"GoneAndRefused": {reason: "the reason is the server's, since it was gone first", server: gone, circuit: open(hook.Unreachable, 99), state: status.Down, since: 95, text: "connection refused", handler: status.Down},
		"Reset":          {reason: "its server takes connections, and its circuit is open", server: up, circuit: open(hook.Unreachable, 60), state: status.Down, since: 100, text: "circuit is open: calls to the extension fail with Unreachable", handler: status.Down},
		"Back":           {reason: "its server is there again", server: back, seen: well, state: status.Up, since: 95, handler: status.Up},
		"FailedBefore":   {reason: "the process that failed is not there any more", server: back, seen: fails(1, 1, 1, 85, 85), state: status.Up, since: 95, handler: status.Up},
		"FailedSince":    {reason: "the new one fails, too", server: back, seen: fails(2, 2, 2, 85, 96), state: status.Failing, since: 85, text: `a.acme: 2 of 2 calls failed lately: no room`, handler: status.Failing},
		"Discovery":      {reason: "its discovery fails", server: up, found: activity.Discovery{At: at(70), Since: at(60), Message: "answer is not JSON"}, seen: well, state: status.Failing, since: 60, text: "answer is not JSON", handler: status.Up},
		"AllFail":        {reason: "whatever it answers", server: up, seen: fails(201, 201, 201, 20, 99), state: status.Failing, since: 20, text: `a.acme: 201 of 201 calls failed lately: no room`, handler: status.Failing},
		"OneFailed":      {reason: "one of many is chance", server: up, seen: fails(1, 1, 100, 99, 99), state: status.Up, since: 1, handler: status.Up},
		"SomeFailInARow": {reason: "but not five in a row", server: up, seen: fails(5, 5, 1000, 98, 99), state: status.Failing, since: 98, text: `a.acme: 5 of 1000 calls failed lately: no room`, handler: status.Failing},
		"Recovered":      {reason: "the last call succeeded", server: up, seen: activity.Seen{LastSuccess: at(99), RecoveredAt: at(98), Lately: activity.Point{Calls: 10, Failures: 8}}, state: status.Up, since: 98, handler: status.Up},
		"FailedLongAgo":  {reason: "what is not called is not judged for ever", server: up, seen: fails(1, 0, 0, 2, 2), state: status.Up, since: 1, handler: status.Up},
		"CircuitOfOne":   {reason: "it is called no more", server: up, seen: fails(5, 5, 5, 40, 44), own: open(hook.Timeout, 44), state: status.Failing, since: 44, text: `a.acme: the handler's circuit is open: no room`, handler: status.Failing},
		"Slow":           {reason: "its calls come near the timeout", server: up, seen: near(37, 37, 37), state: status.Slow, since: 50, text: `a.acme: 37 of 37 calls lately took at least eight tenths of the timeout of 10s`, handler: status.Slow},
		"OneSlow":        {reason: "one of many is chance", server: up, seen: near(1, 1, 37), state: status.Up, since: 1, handler: status.Up},
		"SlowAndGone":    {reason: "the worst decides", server: gone, seen: near(37, 37, 37), state: status.Down, since: 95, text: "connection refused", handler: status.Down},
		"SlowAndFailing": {reason: "timeouts are near the timeout, too", server: up, seen: func() activity.Seen { s := fails(5, 5, 5, 20, 99); s.Near, s.Lately.Near = 5, 5; return s }(), state: status.Failing, since: 20, text: `a.acme: 5 of 5 calls failed lately`, handler: status.Failing},
	} {
		t.Run(name, func(t *testing.T) {
			e := evidence{server: tc.server, circuit: tc.circuit, discovery: tc.found, handlers: []handlerEvidence{
				{name: "a.acme", timeout: 10 * time.Second, seen: tc.seen, circuit: tc.own},
				{name: "b.acme", timeout: 10 * time.Second, seen: activity.Seen{}},
			}}
			got, handlers := judge(&e)
			since := time.Time{}
			if tc.since != 0 {
				since = at(tc.since)
			}
			if got.state != tc.state || !got.since.Equal(since) || !strings.HasPrefix(got.reason, tc.text) || tc.text == "" && got.reason != "" {
				t.Errorf("%s: got %s since %s: %q; want %s since %s: %q", tc.reason, got.state, got.since, got.reason, tc.state, since, tc.text)
			}
			if handlers[0].state != tc.handler {
				t.Errorf("%s: the handler is %s, want %s", tc.reason, handlers[0].state, tc.handler)
			}
			if got.state == status.Down && got.since.Before(tc.server.Up) {
				t.Errorf("Down since %s, and up at %s", got.since, tc.server.Up)
			}
		})
	}
}

// The reason is that of the handler which has failed for longest, and says how many more there are.
func TestReasonOfSeveralHandlers(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	handler := func(name string, since time.Duration) handlerEvidence {
		return handlerEvidence{name: name, seen: activity.Seen{
			Failures: 1, FailingSince: now.Add(since), LastFailed: now.Add(since), Message: "no " + name,
			Lately: activity.Point{Calls: 1, Failures: 1},
		}}
	}
	v, _ := judge(&evidence{
		server:   activity.Server{Up: now, Since: now},
		handlers: []handlerEvidence{handler("a", 2), handler("b", 1), {name: "c"}, handler("d", 3)},
	})
	if want := `b: 1 of 1 call failed lately: no b; and 2 more of 4 handlers`; v.state != status.Failing || v.reason != want {
		t.Errorf("got %s: %s\nwant %s", v.state, v.reason, want)
	}
}
