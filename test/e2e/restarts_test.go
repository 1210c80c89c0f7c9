// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var restarts = flag.Int("restarts", 2, "`number` of times that TestFleet kills the extension for a second, and for three")

// killable is an extension's address, which the test can take away, with all connections, as if its process were killed.
type killable struct {
	t       *testing.T
	address string
	target  string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

func newKillable(t *testing.T, target string) *killable {
	t.Helper()
	k := &killable{t: t, address: "127.0.0.1:0", target: target}
	k.start()
	t.Cleanup(k.kill)
	return k
}

// start listens, at the same port each time.
func (k *killable) start() {
	k.t.Helper()
	l, err := net.Listen("tcp", k.address)
	if err != nil {
		k.t.Fatal(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listener, k.address, k.open = l, l.Addr().String(), map[net.Conn]bool{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.forward(c)
		}
	}()
}

func (k *killable) forward(c net.Conn) {
	defer func() { _ = c.Close() }()
	k.mu.Lock()
	open := k.open
	if open != nil {
		open[c] = true
	}
	k.mu.Unlock()
	to, err := net.Dial("tcp", k.target)
	if open == nil || err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, c)
		_ = to.Close()
	}()
	_, _ = io.Copy(c, to)
}

func (k *killable) kill() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = k.listener.Close()
	for c := range k.open {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	k.open = nil
}

// flaps are what Cluster API wrote into TopologyReconciled when it became False: how often each text.
type flaps struct {
	mu    sync.Mutex
	texts map[string]int
}

// restartExtension kills the extension behind a gateway again and again while Cluster API reconciles Clusters. Only calls
// that were under way when it was killed may fail: the gateway cannot know whether these were processed.
func (w *fixture) restartExtension(e *patcher, port int) {
	w.t.Helper()
	k := newKillable(w.t, loopback(port))
	_, through, err := net.SplitHostPort(k.address)
	if err != nil {
		w.t.Fatal(err)
	}
	var proxied int
	if _, err := fmt.Sscan(through, &proxied); err != nil {
		w.t.Fatal(err)
	}
	w.askThrough(w.startFleetGateway(proxied, nil, "fleet"))
	seen := w.watchTopologies()
	stop := w.keepReconciling()
	before := int(e.patches.Load()) + int(e.validation.Load()) - w.handlerCalls()
	for _, away := range []time.Duration{time.Second, 3 * time.Second} {
		for range *restarts {
			w.reconcileSome(10)
			k.kill()
			time.Sleep(away) // what it takes until the extension listens again
			k.start()
		}
	}
	w.reconcileSome(10)
	stop()
	w.awaitRest(w.reconciled() - *fleetSize)
	served := int(e.patches.Load()) + int(e.validation.Load()) - w.handlerCalls() - before
	seen.mu.Lock()
	defer seen.mu.Unlock()
	w.logf("%d restarts of 1 s and as many of 3 s; TopologyReconciled became False for: %v; %d calls waited", *restarts, seen.texts,
		total(w.gateway.scrape(w.t, "hookgate_handler_restart_waits_total")))
	for text, n := range seen.texts {
		if !strings.Contains(text, "without an answer") && !strings.Contains(text, "connection reset") {
			w.t.Errorf("TopologyReconciled became False %d times although the call was not under way: %s", n, text)
		}
	}
	if served > 0 {
		w.t.Errorf("the extension was called %d times more often than the gateway says", served)
	}
}

// handlerCalls returns how many calls the gateway has made.
func (w *fixture) handlerCalls() int {
	w.t.Helper()
	calls := w.gateway.scrape(w.t, "hookgate_handler_calls_total")
	return total(calls, "hook", "GeneratePatches") + total(calls, "hook", "ValidateTopology")
}

// keepReconciling changes one Cluster after the other, which Cluster API then reconciles, until stop is called.
func (w *fixture) keepReconciling() (stop func()) {
	w.t.Helper()
	ended, running := make(chan struct{}), sync.WaitGroup{}
	running.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ended:
				return
			case <-tick.C:
			}
			c := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, fmt.Sprintf("c%04d", i%*fleetSize))}
			change := fmt.Appendf(nil, `{"metadata":{"annotations":{"changed":"%d"}}}`, i)
			if err := w.Patch(w.ctx, c, client.RawPatch("application/merge-patch+json", change)); err != nil {
				w.t.Error(err)
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(ended); running.Wait() })
}

// reconcileSome waits until Cluster API has reconciled Clusters so often.
func (w *fixture) reconcileSome(n int) {
	w.t.Helper()
	before := w.reconciled()
	w.eventually("Clusters are reconciled", func() (string, bool) {
		now := w.reconciled()
		return fmt.Sprintf("%d times", now-before), now-before >= n
	})
}

// watchTopologies records each time that TopologyReconciled becomes False, until the test ends.
func (w *fixture) watchTopologies() *flaps {
	w.t.Helper()
	c, err := client.NewWithWatch(w.rest, client.Options{Scheme: w.Scheme()})
	if err != nil {
		w.t.Fatal(err)
	}
	events, err := c.Watch(w.ctx, &clusterv1.ClusterList{})
	if err != nil {
		w.t.Fatal(err)
	}
	f := &flaps{texts: map[string]int{}}
	var running sync.WaitGroup
	var stopped atomic.Bool
	w.t.Cleanup(func() { stopped.Store(true); events.Stop(); running.Wait() })
	running.Go(func() {
		reconciled := map[string]bool{}
		for event := range events.ResultChan() {
			cluster, ok := event.Object.(*clusterv1.Cluster)
			if !ok || event.Type == watch.Error {
				if w.ctx.Err() == nil && !stopped.Load() {
					w.t.Errorf("watch Clusters: %+v", event.Object)
				}
				return
			}
			is := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)
			now := is != nil && is.Status == "True"
			if reconciled[cluster.Name] && !now && is != nil {
				f.mu.Lock()
				f.texts[is.Reason+": "+is.Message]++
				f.mu.Unlock()
			}
			reconciled[cluster.Name] = now
		}
	})
	return f
}
