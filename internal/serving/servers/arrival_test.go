// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// receiving is a gRPC server whose callers have a moment to send.
type receiving struct {
	address string
	calls   inFlight
}

func newReceiving(t *testing.T, timeout time.Duration, options ...grpc.ServerOption) *receiving {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiving{address: l.Addr().String()}
	arrivals := arrivals{timeout: timeout, calls: &r.calls, logger: slog.New(slog.DiscardHandler)}
	server := grpc.NewServer(append(arrivals.options(), options...)...)
	healthv1.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	return r
}

// stall opens a stream for method, sends the beginning of its message, and returns the status that the server ends it
// with.
func (r *receiving) stall(t *testing.T, method string) string {
	t.Helper()
	c, err := net.Dial("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(c, c)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "x"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	message := binary.BigEndian.AppendUint32([]byte{0}, 1<<20) // of which a hundred bytes come
	for _, err := range []error{
		framer.WriteSettings(),
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}),
		framer.WriteData(1, false, append(message, make([]byte, 100)...)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatalf("the stream has no status: %v", err)
		}
		if headers, ok := frame.(*http2.MetaHeadersFrame); ok {
			for _, f := range headers.Fields {
				if f.Name == "grpc-status" {
					return f.Value
				}
			}
		}
	}
}

// A stream whose message stalls is ended, and is no call in flight any more.
func TestStalledStreamsEnd(t *testing.T) {
	unknown := grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		return s.RecvMsg(&healthv1.HealthCheckRequest{})
	})
	const deadlineExceeded = "4"
	for _, method := range []string{
		"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch", "/test.Service/Method",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	} {
		r := newReceiving(t, 100*time.Millisecond, unknown)
		if got := r.stall(t, method); got != deadlineExceeded {
			t.Errorf("%s: got status %s, want %s", method, got, deadlineExceeded)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if !r.calls.wait(ctx) {
			t.Errorf("%s: still %d calls are in flight", method, r.calls.count())
		}
		cancel()
	}
}

// The time is for sending only: an answer may take longer, and so may a stream on which the server alone speaks.
func TestReceivedCallsAreNotBounded(t *testing.T) {
	t.Parallel()                    // it waits for most of the time
	const timeout = 2 * time.Second // in which a message arrives that was sent at once
	slow := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		select {
		case <-time.After(2 * timeout):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return handle(ctx, req)
	}
	r := newReceiving(t, timeout, grpc.ChainUnaryInterceptor(slow))
	conn, err := grpc.NewClient(r.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := healthv1.NewHealthClient(conn)
	watch, err := client.Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := watch.Recv()
		ended <- err
	}()
	if _, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("a slow answer: %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("the watch ended: %v", err)
	default:
	}
}
