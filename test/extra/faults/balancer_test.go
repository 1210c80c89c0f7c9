// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// balancer is a load balancer in front of gateways, as a Service of Kubernetes is: it passes connections on, not calls.
// New connections take turns on the gateways whose /readyz is well; what is connected stays.
type balancer struct {
	rest, rpc string // its addresses
	backends  []*backend

	mu   sync.Mutex
	next int
	// made has the gateway of each connection by the address of the client.
	made map[string]connected
}

// backend is a gateway behind a balancer. It keeps its addresses when it is replaced.
type backend struct {
	https, grpc, diagnostics string
	up                       bool // guarded by the balancer
}

// connected says to which gateway a connection was made, and when.
type connected struct {
	to *backend
	at time.Time
}

// probeEvery is how often a balancer asks its gateways whether they are ready.
const probeEvery = 50 * time.Millisecond

// startBalancer starts a balancer, and waits until it knows that all gateways are ready.
func startBalancer(t *testing.T, gateways ...*gateway) *balancer {
	t.Helper()
	b := &balancer{made: map[string]connected{}}
	for _, g := range gateways {
		b.backends = append(b.backends, &backend{https: g.HTTPS, grpc: g.GRPC, diagnostics: g.Diagnostics})
	}
	b.rest = b.listen(t, func(to *backend) string { return to.https })
	b.rpc = b.listen(t, func(to *backend) string { return to.grpc })
	done := make(chan struct{})
	var probes sync.WaitGroup
	for _, to := range b.backends {
		probes.Go(func() { b.probe(to, done) })
	}
	t.Cleanup(func() {
		close(done)
		probes.Wait()
	})
	for _, to := range b.backends {
		b.await(t, to, true)
	}
	return b
}

// probe asks a gateway whether it is ready until done is closed.
func (b *balancer) probe(to *backend, done <-chan struct{}) {
	client := &http.Client{Timeout: process.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		response, err := client.Get("http://" + to.diagnostics + "/readyz")
		up := err == nil && response.StatusCode == http.StatusOK
		if err == nil {
			_ = response.Body.Close()
		}
		b.mu.Lock()
		to.up = up
		b.mu.Unlock()
	}
}

// await waits until the balancer knows that a gateway is ready, or is not.
func (b *balancer) await(t *testing.T, to *backend, up bool) {
	t.Helper()
	process.Eventually(t, "the balancer has noticed", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return to.up == up
	})
}

// listen serves one of the two addresses until the test ends.
func (b *balancer) listen(t *testing.T, address func(*backend) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				go b.serve(client, address)
			}
		}
	}()
	return l.Addr().String()
}

// serve passes a connection on to the next gateway that is ready and accepts it.
func (b *balancer) serve(client net.Conn, address func(*backend) string) {
	defer func() { _ = client.Close() }()
	for _, to := range b.turn() {
		server, err := net.Dial("tcp", address(to))
		if err != nil {
			continue
		}
		b.mu.Lock()
		b.made[client.RemoteAddr().String()] = connected{to, time.Now()}
		b.mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { pass(server, client) })
		both.Go(func() { pass(client, server) })
		both.Wait()
		_ = server.Close()
		return
	}
}

// pass copies what from sends, and its end.
func pass(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil { // a reset: what the other direction has is lost, too
		_ = from.Close()
		_ = to.Close()
		return
	}
	_ = to.(*net.TCPConn).CloseWrite()
}

// turn returns the gateways that are ready, beginning with the one whose turn it is.
func (b *balancer) turn() []*backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	var ready []*backend
	for i := range b.backends {
		if to := b.backends[(b.next+i)%len(b.backends)]; to.up {
			ready = append(ready, to)
		}
	}
	return ready
}

// behind returns to which gateway the connection with that address of the client was made, and when.
func (b *balancer) behind(client string) connected {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.made[client]
}
