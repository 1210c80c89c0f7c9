// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// rollingFaults are the rows of two gateways behind a load balancer, which end one after the other under load.
func rollingFaults() []row {
	return []row{
		{"gateways roll behind a balancer", "every call has its answer", rolled},
		{"gateway killed behind a balancer", "its calls in flight break without an answer, no other one does", killedBehindBalancer},
	}
}

// twins starts two gateways with the same healthy extension and one that holds its calls, and a balancer before them.
func (w *fixture) twins(t *testing.T) (gateways []*gateway, b *balancer, held *program) {
	t.Helper()
	good := startExtension(t, w.authority, healthy)
	held = startExtension(t, w.authority, "holds")
	for range 2 {
		g := newGateway(t, w.authority, map[string]string{
			"good.yaml": w.config("good", "https://"+good.https),
			"held.yaml": w.config("held", "https://"+held.https),
		}, "--shutdown-delay=5s")
		g.start(t, []string{ // which nothing else takes while the gateway is away
			"--http-address=" + freeAddress(t), "--grpc-address=" + freeAddress(t), "--diagnostics-address=" + freeAddress(t),
		})
		gateways = append(gateways, g)
	}
	return gateways, startBalancer(t, gateways...), held
}

// These are the callers of each of three protocols: those that call all the time, and those with one call in flight.
const steadyEach, heldEach = 3, 4

// rolled replaces one gateway after the other, each while calls are in flight on both.
func rolled(t *testing.T, w *fixture, c *tally) {
	gateways, b, held := w.twins(t)
	stop := w.steady(t, b.rest, b.rpc, steadyEach, handler+".good")
	defer stop()
	for i, g := range gateways {
		inFlight := w.hold(t, b, heldEach, held, handler+".held")
		if err := g.Terminate(); err != nil {
			t.Fatal(err)
		}
		b.await(t, b.backends[i], false)
		held.release(t)
		for _, got := range inFlight() {
			c.countf(got.err == nil, "in flight: %v", got.err)
		}
		code := g.ExitCode(t)
		c.countf(code == 0, "exit status %d", code)
		g.again(t)
		b.await(t, b.backends[i], true)
		w.reaches(t, b, b.backends[i])
	}
	for _, got := range stop() {
		c.countf(got.err == nil, "%v", got.err)
	}
}

// killedBehindBalancer kills a gateway and starts it again. What breaks must have been on a connection that was made to
// it before the balancer has noticed, and must not look like an answer.
func killedBehindBalancer(t *testing.T, w *fixture, c *tally) {
	gateways, b, held := w.twins(t)
	stop := w.steady(t, b.rest, b.rpc, steadyEach, handler+".good")
	defer stop()
	inFlight := w.hold(t, b, heldEach, held, handler+".held")

	victim := b.backends[0]
	gateways[0].Kill()
	b.await(t, victim, false)
	noticed := time.Now()
	held.release(t)
	lost, kept := 0, 0
	for _, got := range inFlight() {
		if b.behind(got.at).to == victim {
			lost++
			c.countf(got.broken, "in flight on the killed gateway: %v", got.err)
			continue
		}
		kept++
		c.countf(got.err == nil, "in flight on the other gateway: %v", got.err)
	}
	c.countf(lost > 0 && kept > 0, "%d calls were in flight on the killed gateway, and %d on the other", lost, kept)

	gateways[0].again(t)
	b.await(t, victim, true)
	w.reaches(t, b, victim)
	broken := 0
	for _, got := range stop() {
		on := b.behind(got.at)
		mayBreak := got.broken && on.to == victim && on.at.Before(noticed)
		if mayBreak {
			broken++
		}
		c.countf(got.err == nil || mayBreak, "%v", got.err)
	}
	c.countf(broken <= 3*steadyEach, "%d calls of %d callers broke", broken, 3*steadyEach)
	t.Logf("broken: %d calls that were held in flight, and %d of steady callers", lost, broken)
}

// reaches waits until a new connection is made to a gateway, and a call on it is answered.
func (w *fixture) reaches(t *testing.T, b *balancer, to *backend) {
	t.Helper()
	process.Eventually(t, "a call reaches the gateway that was started again", func() bool {
		reached := false
		for _, caller := range w.newCallers(t, b.rest, b.rpc) {
			got := caller.call(handler + ".good")
			caller.close()
			reached = reached || got.err == nil && b.behind(got.at).to == to
		}
		return reached
	})
}
