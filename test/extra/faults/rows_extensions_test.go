// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
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
		{"extension is 5 s late", "504 Timeout; 503 Unreachable while the circuit is open", faulty("waits", fiveSecondsLate, timeout)},
		{"extension swallows connections", "504 Timeout; 503 Unreachable while the circuit is open", faulty("waits", swallow, timeout)},
		{"extension resets connections", "503 Unreachable", faulty(healthy, reset, bad)},
		{"extension discovers a bomb", "nothing of it is registered", neverKnown},
		{"extension renames its handlers", "the sign is known all the time", renames},
		{"extension is killed and restarted", "503 Unreachable while it is away, then its answer", killedAndRestarted},
		{"extension stops and continues", "504 Timeout; 503 Unreachable while the circuit is open; then its answer", stopped},
		{"extension floods frames", "504 Timeout; 503 Unreachable while the circuit is open", floodsFrames(timeout)},
		{"extension ends connections", "as above; a connection is made once a second", hangsUp(timeout)},
		{"60 calls, each answered 500", broken + "; 5 and the probes reach the extension", sparesTheFailing},
		{"extension says 18 MiB", "200 Failure, cut to 8 KiB; 503 Overloaded if there are many; lines of the log are bounded", saysALot},
		{"gateway registered with itself", "nothing is registered, and one call stays one", loops},
	}
}

// misbehaving returns the fault of an extension that behaves like that, over JSON and, where it can, over gRPC.
func misbehaving(behavior string, specified func(answer) bool) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		p := startExtension(t, w.authority, behavior)
		targets := []string{w.register(t, "https://"+p.https)}
		if behaviors()[behavior].grpc != nil {
			targets = append(targets, w.register(t, "grpcs://"+p.grpcs))
		}
		w.flood(c, specified, targets...)
	}
}

// faulty returns the fault of a connection to an extension that is healthy itself, behavior.
func faulty(behavior, toxic string, specified func(answer) bool) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		good := startExtension(t, w.authority, behavior)
		p := startProxy(t, good.https)
		bad := w.register(t, "https://"+p.Listen)
		p.inject(t, toxic)
		w.flood(c, specified, bad)
		p.heal(t)
		w.eventuallyAnswers(t, bad)
	}
}

// neverKnown registers an extension whose discovery is a bomb.
func neverKnown(t *testing.T, w *fixture, c *tally) {
	p := startExtension(t, w.authority, "discovers a bomb")
	name, remove := w.add(t, "https://"+p.https)
	w.gateway.Expect(t, "extensionConfig="+name+".*nothing is served for it yet")
	c.countf(!w.knows(name), "%s is registered", name)
	remove()
}

// renames registers an extension that has 100 other handlers each time that it is asked.
func renames(t *testing.T, w *fixture, c *tally) {
	p := startExtension(t, w.authority, "renames")
	name := w.register(t, "https://"+p.https)
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		c.countf(w.knows(name), "%s is not registered", name)
	}
}

// killedAndRestarted ends an extension without a goodbye; behind the proxy it comes back at the same address.
func killedAndRestarted(t *testing.T, w *fixture, c *tally) {
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

// stopped stops the process of an extension, whose connections stay open, and lets it continue.
func stopped(t *testing.T, w *fixture, c *tally) {
	p := startExtension(t, w.authority, "waits")
	name := w.register(t, "https://"+p.https)
	w.eventuallyAnswers(t, name)
	p.signal(t, syscall.SIGSTOP)
	w.flood(c, failure(http.StatusGatewayTimeout, http.StatusServiceUnavailable), name)
	p.signal(t, syscall.SIGCONT)
	w.eventuallyAnswers(t, name)
}

// floodsFrames calls an extension over gRPC that sends frames of HTTP/2 without end, and answers nothing.
func floodsFrames(specified func(answer) bool) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		p := startExtension(t, w.authority, "floods")
		w.flood(c, specified, w.register(t, "grpcs://"+p.grpcs))
	}
}

// hangsUp calls an extension over gRPC that ends each connection as soon as it is made.
func hangsUp(specified func(answer) bool) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		p := startExtension(t, w.authority, "hangs up")
		name := w.register(t, "grpcs://"+p.grpcs)
		began := time.Now()
		w.flood(c, specified, name)
		most := limits.RedialBurst + 2 + int(time.Since(began)/limits.RedialInterval)
		made := p.connections(t)
		c.countf(made <= most, "%d connections to the extension are made, want at most %d", made, most)
	}
}

// sparesTheFailing calls an extension that fails, one call after the other, over JSON and gRPC. Each success of the
// gateway's discovery, once a second here, allows a probe, and so does the end of each interval of the circuit.
func sparesTheFailing(t *testing.T, w *fixture, c *tally) {
	const calls, opens = 60, 5
	p := startExtension(t, w.authority, "errors")
	for _, url := range []string{"https://" + p.https, "grpcs://" + p.grpcs} {
		name := w.register(t, url)
		before, began := p.calls(t), time.Now()
		for range calls {
			got, err := post(w.rest, w.gateway.HTTPS, handler+"."+name, samples.Body("BeforeClusterCreate"))
			c.answered(got, err, failure(http.StatusBadGateway, http.StatusServiceUnavailable))
		}
		reached, most := p.calls(t)-before, opens+1+2*int(time.Since(began)/time.Second)
		c.countf(reached <= most, "%d of %d calls reach %s, want at most %d", reached, calls, url, most)
	}
}

// saysALot calls an extension whose message has 18 MiB, over JSON and gRPC.
func saysALot(t *testing.T, w *fixture, c *tally) {
	p := startExtension(t, w.authority, "says a lot")
	names := []string{w.register(t, "https://"+p.https), w.register(t, "grpcs://"+p.grpcs)}
	logged := len(w.gateway.Output())
	overloaded := failure(http.StatusServiceUnavailable)
	w.flood(c, func(got answer) bool { return isCut(got) || overloaded(got) }, names...)
	for _, name := range names {
		got, err := post(w.rest, w.gateway.HTTPS, handler+"."+name, samples.Body("BeforeClusterCreate"))
		c.answered(got, err, isCut)
	}
	c.boundedLog(w, logged)
}

// isCut reports whether an answer is a Failure whose message was cut.
func isCut(got answer) bool {
	var envelope struct{ Status, Message string }
	return got.code == http.StatusOK && json.Unmarshal(got.body, &envelope) == nil && envelope.Status == "Failure" &&
		len(envelope.Message) <= 8<<10 && strings.HasSuffix(envelope.Message, "… (cut)")
}

// loops registers the gateway with itself, under both of its names. A call without a handler goes to all extensions.
func loops(t *testing.T, w *fixture, c *tally) {
	p := startExtension(t, w.authority, healthy)
	w.register(t, "https://"+p.https)
	offered := w.discovered()
	_, port, err := net.SplitHostPort(w.gateway.HTTPS)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"https://" + w.gateway.HTTPS, "https://localhost:" + port, "grpcs://" + w.gateway.GRPC} {
		name, remove := w.add(t, url)
		defer remove()
		w.gateway.Expect(t, name+".*(is this gateway|come back)")
	}
	before := p.calls(t)
	const calls = 20
	for range calls {
		got, err := post(w.rest, w.gateway.HTTPS, "", samples.Body("BeforeClusterCreate"))
		c.answered(got, err, func(got answer) bool { return got.code == http.StatusOK })
	}
	reached := p.calls(t) - before
	c.countf(reached == calls, "%d calls became %d", calls, reached)
	c.countf(bytes.Equal(w.discovered(), offered), "discovery offers something else than before")
}

// boundedLog counts whether the lines that the gateway has logged since then are bounded: a few texts of 16 KiB.
func (c *tally) boundedLog(w *fixture, since int) {
	longest := 0
	for line := range strings.Lines(w.gateway.Output()[since:]) {
		longest = max(longest, len(line))
	}
	c.countf(longest <= 20<<10, "a line of the log has %d bytes", longest)
}

// eventuallyAnswers waits until a healed extension is called again.
func (w *fixture) eventuallyAnswers(t *testing.T, extension string) {
	t.Helper()
	process.Eventually(t, "calls reach "+extension+" again", func() bool {
		return callREST(w.rest, w.gateway.HTTPS, handler+"."+extension, samples.Body("BeforeClusterCreate")) == nil
	})
}

// The flood of calls for one extension: so many callers make so many calls each, one after the other.
const floodCallers, floodCalls = 16, 4

// flood calls extensions from many callers. Each call must have an answer that is as specified.
func (w *fixture) flood(c *tally, specified func(answer) bool, extensions ...string) {
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
		c.countf(false, "%v", err)
		return
	}
	c.countf(specified(got), "status %d: %.200s", got.code, got.body)
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
