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
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
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
		{"300 gRPC gzip bombs", "NotFound; ResourceExhausted or DeadlineExceeded while the memory is used up", zippedMessages},
		{
			"gRPC extension answers gzip bombs", "200 Failure, cut to 8 KiB; 503 Overloaded, or Unreachable if there are many",
			zippedAnswers,
		},
		{"conditions and 19 MiB of {}", "the extension's answer; 503 Overloaded", conditions(
			"request.cluster.metadata.namespace != 'kube-system'",
			func(got answer) bool { return success(got) || failure(http.StatusServiceUnavailable)(got) },
		)},
		{"conditions walk through 19 MiB of {}", "500 Policy; 503 Overloaded", conditions(
			"request.cluster.spec.a.all(x, x != request.cluster.metadata)",
			failure(http.StatusInternalServerError, http.StatusServiceUnavailable),
		)},
	}
}

// nearLimit is a size that the gateway takes.
const nearLimit = 19 << 20

// lingerQuiet is how long a caller that is refused may neither read nor send before the gateway closes its connection.
// Hundreds that encrypt 19 MiB each on the processors of one machine, which prefers the gateway, may be as slow.
const lingerQuiet = time.Second

// largeToHanging returns the fault of large requests to an extension that does not answer, all at the same time, from
// some hosts.
func largeToHanging(callers, hosts int) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
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
func stalled(t *testing.T, w *fixture, c *tally) {
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
func longName(t *testing.T, w *fixture, c *tally) {
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
func protobufBomb(t *testing.T, w *fixture, c *tally) {
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

// zippedMessages calls handlers with names of 19 MiB that are compressed to 19 kB, three on each connection, which is
// what its first window takes, so that all of them are there at the same time.
func zippedMessages(t *testing.T, w *fixture, c *tally) {
	const connections, each = 100, 3
	name, err := proto.Marshal(&hooksv1alpha1.BeforeClusterCreateRequest{Handler: strings.Repeat("n", nearLimit)})
	if err != nil {
		t.Fatal(err)
	}
	bomb := zip(string(name), "", 0, "")
	message := append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(bomb))), bomb...)
	conns := make([]*rawHTTP2, connections)
	for i := range conns {
		if conns[i], err = w.dialHTTP2(t, w.gateway.GRPC); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conns[i].Close() }()
	}
	var running sync.WaitGroup
	for _, conn := range conns {
		running.Go(func() {
			for _, got := range conn.callAll(message, each) {
				ok := got == codes.NotFound || got == codes.ResourceExhausted || got == codes.DeadlineExceeded
				c.countf(ok, "%v", got)
			}
		})
	}
	running.Wait()
}

// callAll makes calls with the same message, which is compressed, and returns the codes of the answers; Unknown for those
// that do not come.
func (c *rawHTTP2) callAll(message []byte, calls int) []codes.Code {
	var out bytes.Buffer
	framer := http2.NewFramer(&out, c.Conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	got := make([]codes.Code, calls)
	for i := range got {
		got[i] = codes.Unknown
		stream := uint32(2*i + 1)
		block := c.block("/hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate", "grpc-encoding", "gzip")
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block, EndHeaders: true})
		for part := range slices.Chunk(message, 16<<10) {
			_ = framer.WriteData(stream, false, part)
		}
		_ = framer.WriteData(stream, true, nil)
	}
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	_, err := c.Write(out.Bytes())
	for left := calls; left > 0 && err == nil; {
		var frame http2.Frame
		frame, err = framer.ReadFrame()
		header, ok := frame.(*http2.MetaHeadersFrame)
		if !ok || !header.StreamEnded() {
			continue
		}
		for _, field := range header.RegularFields() {
			if n, err := strconv.ParseUint(field.Value, 10, 32); field.Name == "grpc-status" && err == nil {
				got[header.StreamID/2] = codes.Code(n)
			}
		}
		left--
	}
	return got
}

// zippedAnswers calls an extension whose message has 18 MiB, and is compressed to 18 kB, from many callers.
func zippedAnswers(t *testing.T, w *fixture, c *tally) {
	p := startExtension(t, w.authority, "answers zipped bombs")
	name := w.register(t, "grpcs://"+p.grpcs)
	unavailable := failure(http.StatusServiceUnavailable)
	var running sync.WaitGroup
	for range 200 {
		running.Go(func() {
			got, err := post(w.rest, w.gateway.HTTPS, handler+"."+name, samples.Body("BeforeClusterCreate"))
			c.answered(got, err, func(got answer) bool { return isCut(got) || unavailable(got) })
		})
	}
	running.Wait()
	got, err := post(w.rest, w.gateway.HTTPS, handler+"."+name, samples.Body("BeforeClusterCreate"))
	c.answered(got, err, isCut)
}

// conditions returns the fault of callers whose requests take 50 times as much memory once they are decoded, to an
// extension whose policy has a condition.
func conditions(expression string, specified func(answer) bool) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		p := startExtension(t, w.authority, healthy)
		name := w.register(t, "https://"+p.https)
		file := filepath.Join(w.gateway.configs, name+"-policy.yaml")
		replace(t, file, fmt.Sprintf("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: %s}\n"+
			"spec: {targetRef: {name: %[1]s}, matchConditions: [{name: a, expression: %q}, {name: b, expression: %q}]}\n",
			name, expression, "request.cluster.metadata.name != 'none'"))
		t.Cleanup(func() { _ = os.Remove(file) })
		process.Eventually(t, "the policy is in effect", func() bool {
			got, err := post(w.rest, w.gateway.HTTPS, handler+"."+name, []byte(`{"cluster":{"metadata":{"name":"none"}}}`))
			return err == nil && got.code == http.StatusNotFound
		})
		const begin, end = `{"cluster":{"spec":{"a":[`, `{}]},"metadata":{"name":"c","namespace":"n"}}}`
		large, half := zip(begin, "{},", nearLimit, end), zip(begin, "{},", 10<<20, end)
		send := func(body []byte) {
			got, err := postZipped(w.rest, w.gateway.HTTPS, handler+"."+name, body)
			c.answered(got, err, specified)
		}
		send(large)
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				for range 2 {
					send(half)
					send(large)
				}
			})
		}
		running.Wait()
	}
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
func (w *fixture) newHTTP2(address string) http2Client {
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
