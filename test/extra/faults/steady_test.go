// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/test/samples"
)

// outcome is what a caller has seen of one call.
type outcome struct {
	began, ended time.Time
	err          error // nil if the extension's own answer came
	// unreachable is set if the gateway has answered that the extension is.
	unreachable bool
	// broken is set if there was no answer at all: the connection broke.
	broken bool
	// at is where the call's connection began: the address of the client.
	at string
}

// caller is a caller with a connection of its own.
type caller struct {
	name  string // of the protocol
	call  func(handler string) outcome
	close func()
}

// newCallers returns a caller of each protocol.
func (w *fixture) newCallers(t *testing.T, rest, rpc string) []*caller {
	t.Helper()
	conn, err := dialGRPC(rpc, attacker, w.client)
	if err != nil {
		t.Fatal(err)
	}
	http2 := new(http.Protocols)
	http2.SetHTTP2(true)
	return []*caller{
		w.newRESTCaller("HTTP/1.1", nil, rest),
		w.newRESTCaller("HTTP/2", http2, rest),
		{"gRPC", func(handler string) outcome { return overGRPC(conn, handler) }, func() { _ = conn.Close() }},
	}
}

// newRESTCaller returns a caller that makes one call after the other. The connection of a call is therefore the one that
// was dialed last, and is known even if it breaks before its handshake is over.
func (w *fixture) newRESTCaller(name string, protocols *http.Protocols, address string) *caller {
	client := newClient(attacker, w.client)
	transport := client.Transport.(*http.Transport)
	transport.Protocols = protocols
	dial := transport.DialContext
	var dialed atomic.Pointer[net.Conn]
	transport.DialContext = func(ctx context.Context, network, to string) (net.Conn, error) {
		c, err := dial(ctx, network, to)
		if err == nil {
			dialed.Store(&c)
		}
		return c, err
	}
	return &caller{name, func(handler string) outcome {
		seen := outcome{err: callREST(client, address, handler, samples.Body("BeforeClusterCreate"))}
		if c := dialed.Load(); c != nil {
			seen.at = (*c).LocalAddr().String()
		}
		seen.unreachable = seen.err != nil && strings.HasPrefix(seen.err.Error(), "status 503: ")
		_, seen.broken = errors.AsType[unansweredError](seen.err)
		return seen
	}, client.CloseIdleConnections}
}

// overGRPC calls a handler, and notes the connection. A status without details is not the gateway's.
func overGRPC(conn grpc.ClientConnInterface, name string) outcome {
	var at peer.Peer
	err := callGRPC(waiting{conn}, name, grpc.Peer(&at))
	unavailable, answered := status.Code(err) == codes.Unavailable, len(status.Convert(err).Details()) > 0
	seen := outcome{err: err, broken: unavailable && !answered, unreachable: unavailable && answered}
	if at.LocalAddr != nil {
		seen.at = at.LocalAddr.String()
	}
	return seen
}

// waiting makes calls that wait for a connection: a balancer may need a moment to find another gateway.
type waiting struct{ grpc.ClientConnInterface }

// Invoke implements grpc.ClientConnInterface.
func (w waiting) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	return w.ClientConnInterface.Invoke(ctx, method, in, out, append(options, grpc.WaitForReady(true))...)
}

// steady calls handlers in turns from callers of each protocol, one call after the other, until stop is called, which
// returns what they have seen.
func (w *fixture) steady(t *testing.T, rest, rpc string, each int, handlers ...string) (stop func() []outcome) {
	t.Helper()
	done := make(chan struct{})
	var mu sync.Mutex
	var seen []outcome
	var running sync.WaitGroup
	for range each {
		for _, caller := range w.newCallers(t, rest, rpc) {
			running.Go(func() {
				defer caller.close()
				for i := 0; ; i++ {
					began := time.Now()
					got := caller.call(handlers[i%len(handlers)])
					got.began, got.ended = began, time.Now()
					if got.err != nil {
						got.err = fmt.Errorf("over %s: %w", caller.name, got.err)
					}
					mu.Lock()
					seen = append(seen, got)
					mu.Unlock()
					select {
					case <-done:
						return
					case <-time.After(pause / 4):
					}
				}
			})
		}
	}
	return sync.OnceValue(func() []outcome {
		close(done)
		running.Wait()
		return seen
	})
}

// hold makes calls of a handler that does not answer before its extension lets it, each on a connection of its own, and
// waits until all are at the extension. The function waits for their ends.
func (w *fixture) hold(t *testing.T, b *balancer, each int, held *program, handler string) (await func() []outcome) {
	t.Helper()
	before := held.calls(t)
	var mu sync.Mutex
	var seen []outcome
	var running sync.WaitGroup
	calls := 0
	for range each {
		for _, caller := range w.newCallers(t, b.rest, b.rpc) {
			calls++
			running.Go(func() {
				defer caller.close()
				got := caller.call(handler)
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, got)
			})
		}
	}
	held.awaitCalls(t, before+calls)
	return func() []outcome {
		running.Wait()
		return seen
	}
}
