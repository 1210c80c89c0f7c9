// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// greeted returns the frames of a connection over HTTP/2 on which the client has begun its first stream: to ask for the
// server's health.
func greeted(c net.Conn) (*http2.Framer, error) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return nil, err
	}
	framer := http2.NewFramer(c, c)
	if err := framer.WriteSettings(); err != nil {
		return nil, err
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return nil, err
		}
		if settings, ok := frame.(*http2.SettingsFrame); ok && !settings.IsAck() {
			err = framer.WriteSettingsAck()
		}
		if _, ok := frame.(*http2.HeadersFrame); ok || err != nil {
			return framer, err
		}
	}
}

// rawGRPC serves connections over gRPC without TLS.
func rawGRPC(t *testing.T, serve func(*http2.Framer)) registry.ClientConfig {
	t.Helper()
	l := listen(t, "tcp", "127.0.0.1:0")
	cc := serveRaw(t, l, newAuthority(t), func(c net.Conn) {
		if framer, err := greeted(c); err == nil {
			serve(framer)
		}
	})
	return registry.ClientConfig{Protocol: registry.GRPC, URL: "grpc" + cc.URL[len("https"):]}
}

// answerHealth answers a stream of the health service with n changes. It stays open, or ends.
func answerHealth(t *testing.T, framer *http2.Framer, stream uint32, n int, ends bool) error {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	field := func(name, value string) { _ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) }
	field(":status", "200")
	field("content-type", "application/grpc")
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	if err := framer.WriteData(stream, false, healthMessages(t, n)); err != nil || !ends {
		return err
	}
	block.Reset()
	field("grpc-status", "0")
	return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
}

// healthMessages returns messages of the health service that say something else each time.
func healthMessages(t *testing.T, n int) []byte {
	var all []byte
	for i := range n {
		message, err := proto.Marshal(&healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_ServingStatus(1 + i%2)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(binary.BigEndian.AppendUint32(append(all, 0), uint32(len(message))), message...)
	}
	return all
}

// Whatever an extension over gRPC sends besides its answers is read slowly: a PING after it is answered late.
func TestGRPCFloodsAreReadSlowly(t *testing.T) {
	const enough = 2*limits.OverheadBytes + limits.CallOverheadBytes + limits.OverheadBytesPerSecond // a second's, at least
	for name, tc := range map[string]struct {
		send func(*testing.T, *http2.Framer, uint32) error
		size int // of what send sends, as overhead
	}{
		"SETTINGS": {func(_ *testing.T, f *http2.Framer, i uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100 + i%2})
		}, 15},
		"PING":          {func(_ *testing.T, f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{1}) }, 17},
		"PRIORITY":      {func(_ *testing.T, f *http2.Framer, _ uint32) error { return f.WritePriority(1, http2.PriorityParam{}) }, 14},
		"WINDOW_UPDATE": {func(_ *testing.T, f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(1<<31-1, 1) }, 13},
		"RST_STREAM": {func(_ *testing.T, f *http2.Framer, i uint32) error {
			return f.WriteRSTStream(1<<20+2*i+1, http2.ErrCodeCancel)
		}, 13},
		"empty DATA": {func(_ *testing.T, f *http2.Framer, _ uint32) error { return f.WriteData(1, false, nil) }, 9},
		"DATA of no one": {func(_ *testing.T, f *http2.Framer, _ uint32) error {
			return f.WriteData(1<<20+1, false, []byte("12345"))
		}, 9 + 5},
		"ends of no one": {func(_ *testing.T, f *http2.Framer, _ uint32) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1<<20 + 1, BlockFragment: []byte{0x88}, EndHeaders: true, EndStream: true})
		}, 10},
		"changes of health": {func(t *testing.T, f *http2.Framer, _ uint32) error {
			return f.WriteData(1, false, healthMessages(t, 10))
		}, 70 * limits.HealthOverhead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := make(chan time.Duration, 1)
			cc := rawGRPC(t, func(framer *http2.Framer) {
				if err := answerHealth(t, framer, 1, 1, false); err != nil {
					return
				}
				flood(framer, enough/tc.size+1, took, func(i uint32) error { return tc.send(t, framer, i) })
			})
			g := newGRPC(t, Config{})
			c, err := g.channels.get(cc, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			defer c.release()
			c.conn.Connect()
			select {
			case got := <-took:
				if got < 900*time.Millisecond {
					t.Errorf("took %s, want a second", got)
				}
			case <-time.After(patience):
				t.Error("the PING was not answered")
			}
		})
	}
}

// A server that ends each connection, or each stream of its health, is asked again at a bounded rate.
func TestGRPCServersThatEndAll(t *testing.T) {
	const healthOverhead = 100 * 7 * limits.HealthOverhead
	for name, tc := range map[string]struct {
		serve func(*http2.Framer, func())
		most  int // in a second and a half
	}{
		"connections": {func(_ *http2.Framer, ended func()) { ended() }, limits.RedialBurst + 1},
		"GOAWAY": {func(framer *http2.Framer, ended func()) {
			ended()
			_ = framer.WriteGoAway(0, http2.ErrCodeNo, nil)
		}, limits.RedialBurst + 1},
		"streams of health": {func(framer *http2.Framer, ended func()) {
			for stream := uint32(1); answerHealth(t, framer, stream, 100, true) == nil; {
				ended()
				for begun := false; !begun; {
					frame, err := framer.ReadFrame()
					if err != nil {
						return
					}
					_, begun = frame.(*http2.HeadersFrame)
					stream = frame.Header().StreamID
				}
			}
		}, (2*limits.OverheadBytes + limits.OverheadBytesPerSecond*3/2) / healthOverhead},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			enough := make(chan struct{})
			cc := rawGRPC(t, func(framer *http2.Framer) {
				tc.serve(framer, func() {
					if n.Add(1) == int64(tc.most)+2 {
						close(enough)
					}
				})
			})
			g := newGRPC(t, Config{})
			c, err := g.channels.get(cc, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			defer c.release()
			began := time.Now()
			c.conn.Connect()
			select {
			case <-enough:
			case <-time.After(patience):
				t.Fatal("the server is not asked again")
			}
			if took := time.Since(began); took < 1500*time.Millisecond {
				t.Errorf("%d times in %s, want %d in 1.5s", n.Load(), took, tc.most)
			}
		})
	}
}
