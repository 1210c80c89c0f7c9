// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// extensionFaults are the rows whose fault is an extension's.
func extensionFaults() []row {
	const open = http.StatusServiceUnavailable // the answer while the circuit is open
	timeout, bad := failure(http.StatusGatewayTimeout, open), failure(http.StatusBadGateway, open)
	broken := "502 BadResponse; 503 Unreachable while the circuit is open"
	return []row{
		{"extension hangs", "504 Timeout; 503 Unreachable while the circuit is open", misbehaving("hangs", timeout)},
		{"extension answers 500", broken, misbehaving("errors", bad)},
		{"extension answers garbage", broken, misbehaving("garbage", bad)},
		{"extension answers half", broken, misbehaving("half", bad)},
		{"extension answers 30 MiB", broken, misbehaving("huge", bad)},
		{"extension answers byte by byte", "504 Timeout; 503 Unreachable while the circuit is open", misbehaving("drips", timeout)},
		{"extension answers a gzip bomb", broken, misbehaving("zipped bomb", bad)},
		{"extension is 5 s late", "504 Timeout; 503 Unreachable while the circuit is open", faulty(fiveSecondsLate, timeout)},
		{"extension swallows connections", "504 Timeout; 503 Unreachable while the circuit is open", faulty(swallow, timeout)},
		{"extension resets connections", "503 Unreachable", faulty(reset, bad)},
		{"extension discovers a bomb", "nothing of it is registered", neverKnown},
		{"extension renames its handlers", "the sign is known all the time", renames},
		{"extension is killed and restarted", "503 Unreachable while it is away, then its answer", killedAndRestarted},
	}
}

// misbehaving returns the fault of an extension that behaves like that, over JSON and, where it can, over gRPC.
func misbehaving(behavior string, specified func(answer) bool) func(*testing.T, *world, *tally) {
	return func(t *testing.T, w *world, c *tally) {
		p := startExtension(t, w.authority, behavior)
		targets := []string{w.register(t, "https://"+p.https)}
		if behaviors()[behavior].grpc != nil {
			targets = append(targets, w.register(t, "grpcs://"+p.grpcs))
		}
		w.flood(c, specified, targets...)
	}
}

// faulty returns the fault of a connection to an extension that is healthy itself.
func faulty(toxic string, specified func(answer) bool) func(*testing.T, *world, *tally) {
	return func(t *testing.T, w *world, c *tally) {
		good := startExtension(t, w.authority, "waits")
		p := startProxy(t, good.https)
		bad := w.register(t, "https://"+p.Listen)
		p.inject(t, toxic)
		w.flood(c, specified, bad)
		p.heal(t)
		w.eventuallyAnswers(t, bad)
	}
}

// neverKnown registers an extension whose discovery is a bomb.
func neverKnown(t *testing.T, w *world, c *tally) {
	p := startExtension(t, w.authority, "discovers a bomb")
	name, remove := w.add(t, "https://"+p.https)
	w.gateway.Expect(t, "extensionConfig="+name+".*nothing is served for it yet")
	c.count(!w.knows(name), "%s is registered", name)
	remove()
}

// renames registers an extension that has 100 other handlers each time that it is asked.
func renames(t *testing.T, w *world, c *tally) {
	p := startExtension(t, w.authority, "renames")
	name := w.register(t, "https://"+p.https)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		c.count(w.knows(name), "%s is not registered", name)
	}
}

// killedAndRestarted ends an extension without a goodbye; behind the proxy it comes back at the same address.
func killedAndRestarted(t *testing.T, w *world, c *tally) {
	first := startExtension(t, w.authority, healthy)
	p := startProxy(t, first.https)
	bad := w.register(t, "https://"+p.Listen)
	w.eventuallyAnswers(t, bad)
	first.Kill()
	w.flood(c, failure(http.StatusServiceUnavailable), bad)
	second := startExtension(t, w.authority, healthy)
	p.Stop()
	p.Upstream = second.https
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.eventuallyAnswers(t, bad)
}

// eventuallyAnswers waits until a healed extension is called again.
func (w *world) eventuallyAnswers(t *testing.T, extension string) {
	t.Helper()
	process.Eventually(t, "calls reach "+extension+" again", func() bool {
		return callREST(w.rest, w.gateway.HTTPS, handler+"."+extension, samples.Body("BeforeClusterCreate")) == nil
	})
}

// The flood of calls for one extension: so many callers make so many calls each, one after the other.
const floodCallers, floodCalls = 16, 4

// flood calls extensions from many callers. Each call must have an answer that is as specified.
func (w *world) flood(c *tally, specified func(answer) bool, extensions ...string) {
	var running sync.WaitGroup
	for i := range floodCallers {
		running.Go(func() {
			for range floodCalls {
				got, err := post(w.rest, w.gateway.HTTPS, handler+"."+extensions[i%len(extensions)],
					samples.Body("BeforeClusterCreate"))
				c.answered(got, err, specified)
			}
		})
	}
	running.Wait()
}

// answered counts a call.
func (c *tally) answered(got answer, err error, specified func(answer) bool) {
	if err != nil {
		c.count(false, "%v", err)
		return
	}
	c.count(specified(got), "status %d: %.200s", got.code, got.body)
}

// failure returns a function that reports whether an answer is a failure with one of the status codes, in the envelope
// of the hook, with a text of a sensible size that does not have the extension's own words.
func failure(codes ...int) func(answer) bool {
	return func(got answer) bool {
		var envelope struct{ Kind, Status, Message string }
		return slices.Contains(codes, got.code) && json.Unmarshal(got.body, &envelope) == nil &&
			envelope.Kind == "BeforeClusterCreateResponse" && envelope.Status == "Failure" && envelope.Message != "" &&
			len(got.body) < 16<<10 && !strings.Contains(envelope.Message, "stack trace")
	}
}
