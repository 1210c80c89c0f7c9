// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/overhead"
)

// speaker answers discovery with 4 MiB, and none of the other calls.
type speaker struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
}

func (speaker) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	return &hooksv1alpha1.DiscoveryResponse{Message: strings.Repeat("x", 4<<20)}, nil
}

// What calls need is no overhead: large answers and requests, many calls at a time, and calls that are given up.
func TestCallsAreNoOverhead(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(8 << 20))
	hooksv1alpha1.RegisterDiscoveryServiceServer(server, speaker{})
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	c, err := NewGRPC(GRPCConfig{
		Scheme: "passthrough", Network: "tcp", Address: l.Addr().String(), Authority: "a", Failures: &Failures{},
		BodyBytes: 8 << 20, Bucket: new(overhead.Bucket), // a connection that needs tokens is closed
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	discover := func(ctx context.Context) error {
		answer := &hooksv1alpha1.DiscoveryResponse{}
		err := c.Invoke(ctx, hooksv1alpha1.DiscoveryService_Discovery_FullMethodName, &hooksv1alpha1.DiscoveryRequest{}, answer)
		if err == nil && len(answer.GetMessage()) != 4<<20 {
			err = errors.New("another answer")
		}
		return err
	}
	unknown := func(text string) error { // has an answer, that the method is unknown
		err := c.Invoke(t.Context(), "/hookgate.hooks.v1alpha1.DiscoveryService/Other",
			&hooksv1alpha1.DiscoveryResponse{Message: text}, &hooksv1alpha1.DiscoveryResponse{})
		if err == nil || !strings.Contains(err.Error(), "unknown method") {
			return err
		}
		return nil
	}
	for range 3 {
		if err := errors.Join(discover(t.Context()), unknown(strings.Repeat("x", 4<<20))); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		_ = discover(gone) // whatever comes of it by then
		cancel()
	}
	var calls sync.WaitGroup
	for range 2000 {
		calls.Go(func() {
			if err := unknown("x"); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// block returns the header of a request to a path.
func block(path string) []byte {
	var b bytes.Buffer
	_ = hpack.NewEncoder(&b).WriteField(hpack.HeaderField{Name: ":path", Value: path})
	return b.Bytes()
}

// What comes of an answer that was given up is no overhead, up to what may be on its way.
func TestAnswersThatWereGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		path string
		most int // bytes of DATA
	}{
		"call":   {"/a.Service/Method", mostInFlight},
		"health": {"/grpc.health.v1.Health/Watch", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testGivenUp(t, tc.path, tc.most) })
		})
	}
}

// testGivenUp reads what comes of an answer that was given up, most bytes of which are no overhead.
func testGivenUp(t *testing.T, path string, most int) {
	ours, theirs := net.Pipe()
	failures := &Failures{}
	c := newBoundedConn(ours, new(overhead.Bucket), failures)
	defer func() { _, _ = c.Close(), theirs.Close() }()
	go func() { // the server
		_, _ = io.ReadFull(theirs, make([]byte, len(http2.ClientPreface)))
		framer := http2.NewFramer(theirs, theirs)
		for {
			if frame, err := framer.ReadFrame(); err != nil || frame.Header().Type == http2.FrameRSTStream {
				break
			}
		}
		for data := make([]byte, 16<<10); framer.WriteData(1, false, data) == nil; {
		}
	}()
	framer := http2.NewFramer(c, nil)
	_, err := io.WriteString(c, http2.ClientPreface)
	if err := errors.Join(err,
		framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(path), EndHeaders: true}),
		framer.WriteRSTStream(1, http2.ErrCodeCancel),
	); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, c)
	if !errors.Is(err, ErrOverhead) {
		t.Errorf("ended with %v, want %v", err, ErrOverhead)
	}
	if n < int64(most) || n > int64(most+2*limits.OverheadBytes) {
		t.Errorf("%d bytes were read, want %d, and no more than what calls need", n, most)
	}
	if got := ClassifyGRPC(failures.Latest()).Text; got != "the server sends too much besides its answers" {
		t.Errorf("the failure is %q", got)
	}
}

// An address is dialed a few times at once, and then once a second; others do not wait for it.
func TestDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d dials
		began := time.Now()
		for i, want := range []int{0, 0, 0, 0, 0, 1, 2, 3} {
			if err := d.wait(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if got := time.Since(began); got != time.Duration(want)*time.Second {
				t.Errorf("dial %d after %s, want %ds", i, got, want)
			}
		}
		if _ = d.wait(t.Context(), "b"); time.Since(began) != 3*time.Second {
			t.Error("another address waits")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := d.wait(ctx, "a"); err == nil {
			t.Error("no error, but there is no time to wait")
		}
		for i := range 2 * mostDialed {
			_ = d.wait(t.Context(), strings.Repeat("x", i))
		}
		if got := len(d.addresses); got > mostDialed {
			t.Errorf("%d addresses are remembered", got)
		}
	})
}
