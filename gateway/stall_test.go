// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/internal/budget"
)

// A message over gRPC that does not arrive is taken for as large as one may be: its stream goes on while there is memory
// for that, and ends at once if there is none, because a message that waits for memory keeps arriving.
func TestStalledMessagesReserveMemory(t *testing.T) {
	t.Parallel() // it waits for most of the time
	f := newFixture(t, nil)
	f.registry.SetReady()
	serve := func(timeout time.Duration) *receiving {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		r := &receiving{address: l.Addr().String()}
		receipts := receipts{timeout: timeout, calls: &r.calls, logger: slog.New(slog.DiscardHandler)}
		server := grpc.NewServer(append(receipts.options(), GRPCOptions()...)...)
		RegisterGRPC(server, f.services, mandated, f.observer, nil, f.memory)
		go func() { _ = server.Serve(l) }() // until it is stopped
		t.Cleanup(server.Stop)
		return r
	}
	const method = "/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate"
	const deadlineExceeded = "4"
	other, err := f.memory.Reserve(t.Context(), budget.Caller("other"), f.memory.Usage().Limit*8/10)
	if err != nil {
		t.Fatal(err)
	}
	took := elapsed(t)
	if got := serve(time.Hour).stall(t, method); got != deadlineExceeded {
		t.Errorf("without memory, the stream ended with status %s", got)
	}
	if took := took(); took > 4*time.Second { // calls wait for 5 s
		t.Errorf("without memory, the stream ended after %s", took)
	}
	other.Release()

	ended := make(chan string, 1)
	r := serve(8 * time.Second)
	go func() { ended <- r.stall(t, method) }()
	for deadline := time.Now().Add(time.Minute); f.memory.Usage().Used != callBytes+MaxBodyBytes; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d bytes are reserved", f.memory.Usage().Used)
		}
	}
	if got := <-ended; got != deadlineExceeded {
		t.Errorf("with memory, the stream ended with status %s", got)
	}
}
