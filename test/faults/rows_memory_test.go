// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// memoryFaults are the rows of callers that hold as much memory as they can.
func memoryFaults() []row {
	const large = "504 Timeout; 503 Unreachable or Overloaded; no answer for those that neither read nor send for a second"
	return []row{
		{"96 callers send 19 MiB", large, largeToHanging(96, 1)},
		{"500 callers send 19 MiB", large, largeToHanging(500, 1)},
		{"500 hosts send 19 MiB", large, largeToHanging(500, 500)},
		{"60 gRPC streams stall", "DeadlineExceeded, all but 9 before the minute that these may take", stalled},
		{"gRPC name of 19 MiB", "NotFound, cut; lines of the log are bounded", longName},
		{"gRPC bomb of items", "ResourceExhausted", protobufBomb},
	}
}

// nearLimit is a size that the gateway takes.
const nearLimit = 19 << 20

// lingerQuiet is how long a caller that is refused may neither read nor send before the gateway closes its connection.
// Hundreds that encrypt 19 MiB each on the processors of one machine, which prefers the gateway, may be as slow.
const lingerQuiet = time.Second

// largeToHanging returns the fault of large requests to an extension that does not answer, all at the same time, from
// some hosts.
func largeToHanging(callers, hosts int) func(*testing.T, *world, *tally) {
	return func(t *testing.T, w *world, c *tally) {
		p := startExtension(t, w.authority, "hangs")
		name := w.register(t, "https://"+p.https)
		body := largeBody(nearLimit)
		specified := failure(http.StatusGatewayTimeout, http.StatusServiceUnavailable)
		clients := []*http.Client{w.rest}
		if hosts > 1 {
			clients = make([]*http.Client, hosts)
			for i := range clients {
				clients[i] = newClient(fmt.Sprintf("127.1.%d.%d", i/250, 1+i%250), w.client)
				defer clients[i].CloseIdleConnections()
			}
		}
		var unanswered atomic.Int64
		var running sync.WaitGroup
		for i := range callers {
			running.Go(func() {
				began := time.Now()
				got, err := post(clients[i%len(clients)], w.gateway.HTTPS, handler+"."+name, body)
				if err != nil && time.Since(began) > lingerQuiet {
					unanswered.Add(1)
					c.countf(true, "")
					return
				}
				c.answered(got, err, specified)
			})
		}
		running.Wait()
		if n := unanswered.Load(); n > 0 {
			t.Logf("%d callers had too little of the processors to send or to read the answer in time", n)
		}
	}
}

// stalled opens streams of which most of a large message arrives, and nothing after it. Each counts as a message of
// 20 MiB, so that the share of their caller has room for 9. These may take a minute; the others wait for room for 5 s.
func stalled(t *testing.T, w *world, c *tally) {
	const streams, each, stay = 60, 10, 9
	const stays = 45 * time.Second // between the 5 s and the minute, so that a busy machine may add to the former
	began, most := time.Now(), prefixed(nearLimit, nearLimit-1<<20)
	var late atomic.Int64
	var running sync.WaitGroup
	for range streams / each {
		client := w.newHTTP2(w.gateway.GRPC)
		defer client.CloseIdleConnections()
		for range each {
			running.Go(func() {
				stream, peer := io.Pipe() // whose reader waits for more until the client closes it
				go func() { _, _ = peer.Write(most) }()
				got, err := client.callRaw(t.Context(), "BeforeClusterCreate", stream)
				c.countf(err == nil && got == codes.DeadlineExceeded, "%v, %v", got, err)
				if time.Since(began) > stays {
					late.Add(1)
				}
			})
		}
	}
	running.Wait()
	c.countf(late.Load() <= stay, "%d streams stay for more than %s", late.Load(), stays)
}

// longName calls handlers with names of 19 MiB, one after the other.
func longName(t *testing.T, w *world, c *tally) {
	rpc, err := dialGRPC(w.gateway.GRPC, attacker, w.client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rpc.Close() }()
	logged := len(w.gateway.Output())
	request := &hooksv1alpha1.BeforeClusterCreateRequest{Handler: strings.Repeat("n", nearLimit)}
	for range 8 {
		_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(rpc).BeforeClusterCreate(t.Context(), request)
		got := status.Convert(err)
		c.countf(got.Code() == codes.NotFound && len(got.Message()) < 1<<10, "%s: %.300s", got.Code(), got.Message())
	}
	c.boundedLog(w, logged)
}

// protobufBomb sends ten million empty items.
func protobufBomb(t *testing.T, w *world, c *tally) {
	client := w.newHTTP2(w.gateway.GRPC)
	defer client.CloseIdleConnections()
	const items, size = 4<<3 | 2, 20_000_000 // field 4, with its length
	bomb := prefixed(size, size)
	for i := 5; i < len(bomb); i += 2 {
		bomb[i], bomb[i+1] = items, 0
	}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			got, err := client.callRaw(t.Context(), "GeneratePatches", bytes.NewReader(bomb))
			c.countf(err == nil && got == codes.ResourceExhausted, "%v, %v", got, err)
		})
	}
	running.Wait()
}

// prefixed returns the frame of a gRPC message whose size is announced, with room for the part of it that is sent.
func prefixed(announced uint32, sent int) []byte {
	frame := make([]byte, 5+sent)
	binary.BigEndian.PutUint32(frame[1:], announced)
	return frame
}

// http2Client sends to a gateway what a client of gRPC would not.
type http2Client struct {
	*http.Transport
	address string
}

// newHTTP2 returns a client of the attacker, with a connection of its own.
func (w *world) newHTTP2(address string) http2Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return http2Client{&http.Transport{
		TLSClientConfig: w.client.Clone(), DialContext: dialFrom(attacker), Protocols: protocols,
	}, address}
}

// callRaw calls a hook with the bytes of a gRPC stream, and returns the code of the answer.
func (c http2Client) callRaw(ctx context.Context, hook string, stream io.Reader) (codes.Code, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	service := "LifecycleHooksService/"
	if hook == "GeneratePatches" {
		service = "TopologyMutationHooksService/"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"https://"+c.address+"/hookgate.hooks.v1alpha1."+service+hook, stream)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := c.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0, err
	}
	code := response.Header.Get("Grpc-Status") // of an answer that has only trailers
	if code == "" {
		code = response.Trailer.Get("Grpc-Status")
	}
	n, err := strconv.ParseUint(code, 10, 32)
	return codes.Code(n), err
}
