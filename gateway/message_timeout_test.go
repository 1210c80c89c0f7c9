// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/binary"
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/test/process"
)

// A message over gRPC that does not arrive is taken for as large as one may be: its stream goes on while there is memory
// for that, and ends at once if there is none, because a message that waits for memory keeps arriving.
func TestStalledMessagesReserveMemory(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	_, address, config := serve(t, func(c *servers.Config) {
		c.GRPCOptions = GRPCOptions()
		c.Register = func(s grpc.ServiceRegistrar) { RegisterGRPC(s, f.services.dispatcher, f.services) }
	})
	// stall sends the beginning of a message, and returns the status with which its stream ends.
	stall := func(ctx context.Context) string {
		body, send := io.Pipe()
		defer func() { _ = send.Close() }()
		go func() {
			_, _ = send.Write(append(binary.BigEndian.AppendUint32([]byte{0}, 1<<20), make([]byte, 100)...))
		}()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost,
			"https://"+address+"/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate", body)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body) // the trailer follows
		return answer.Trailer.Get("Grpc-Status") + answer.Header.Get("Grpc-Status")
	}
	other, err := f.memory.Reserve(t.Context(), budget.Caller("other"), f.memory.Usage().Limit*8/10)
	if err != nil {
		t.Fatal(err)
	}
	const deadlineExceeded = "4"
	began := time.Now()
	if got := stall(t.Context()); got != deadlineExceeded {
		t.Errorf("without memory, the stream ended with status %s", got)
	}
	if took := time.Since(began); took > 20*time.Second { // messages have 60 s
		t.Errorf("without memory, the stream ended after %s", took)
	}
	other.Release()

	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() { ended <- stall(ctx) }()
	process.Eventually(t, "a message of the largest size is reserved", func() bool {
		return f.memory.Usage().Used == callBytes+BodyBytes
	})
	leave()
	<-ended
	process.Eventually(t, "the memory is given back", func() bool { return f.memory.Usage().Used == 0 })
}
