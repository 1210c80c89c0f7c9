// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// rawHTTP2 serves connections over HTTP/2 on which the client has begun its first stream.
func rawHTTP2(t *testing.T, serve func(*http2.Framer)) registry.ClientConfig {
	t.Helper()
	a := newAuthority(t)
	config := &tls.Config{
		Certificates: []tls.Certificate{issue(t, a, time.Now().Add(time.Hour))}, NextProtos: []string{"h2"},
	}
	return serveRaw(t, tls.NewListener(listen(t, "tcp", "127.0.0.1:0"), config), a, func(c net.Conn) {
		if framer, err := greeted(c); err == nil {
			serve(framer)
		}
	})
}

// headerBlock returns the block of the header of an answer.
func headerBlock(status string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: status})
	_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/json"})
	return block.Bytes()
}

// flood sends n frames and then a PING, and how long it took until that was answered.
func flood(framer *http2.Framer, n int, took chan<- time.Duration, send func(i uint32) error) {
	sent := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(sent)
		for i := range uint32(n) {
			if send(i) != nil {
				return
			}
		}
		_ = framer.WritePing(false, [8]byte{2})
	}()
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			break
		}
		if ping, ok := frame.(*http2.PingFrame); ok && ping.IsAck() && ping.Data[0] == 2 {
			took <- time.Since(began)
			break
		}
	}
	<-sent
}

// Whatever an extension over HTTP/2 sends besides its answers is read slowly: a PING after it is answered late.
func TestHTTP2FloodsAreReadSlowly(t *testing.T) {
	log.SetOutput(io.Discard) // net/http writes a line for each frame that it does not know
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	const enough = 2*limits.OverheadBytes + limits.CallOverheadBytes + limits.OverheadBytesPerSecond // a second's, at least
	for name, tc := range map[string]struct {
		send func(*http2.Framer, uint32) error
		size int // of what send sends, as overhead
	}{
		"SETTINGS": {func(f *http2.Framer, i uint32) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100 + i%2})
		}, 15},
		"PING":                    {func(f *http2.Framer, _ uint32) error { return f.WritePing(false, [8]byte{1}) }, 17},
		"PRIORITY":                {func(f *http2.Framer, _ uint32) error { return f.WritePriority(1, http2.PriorityParam{}) }, 14},
		"WINDOW_UPDATE":           {func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(0, 1) }, 13},
		"WINDOW_UPDATE of a call": {func(f *http2.Framer, _ uint32) error { return f.WriteWindowUpdate(1, 1) }, 13},
		"RST_STREAM":              {func(f *http2.Framer, i uint32) error { return f.WriteRSTStream(1<<20+2*i+1, http2.ErrCodeCancel) }, 13},
		"empty DATA":              {func(f *http2.Framer, _ uint32) error { return f.WriteData(1, false, nil) }, 9},
		"DATA of one byte":        {func(f *http2.Framer, _ uint32) error { return f.WriteData(1, false, []byte(" ")) }, 9},
		"padding": {func(f *http2.Framer, _ uint32) error {
			return f.WriteDataPadded(1, false, []byte(" "), make([]byte, 255))
		}, 265},
		"unknown frames": {func(f *http2.Framer, _ uint32) error { return f.WriteRawFrame(0x42, 0, 0, nil) }, 9},
		"header of no one": {func(f *http2.Framer, _ uint32) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1<<20 + 1, BlockFragment: []byte{0x88}, EndHeaders: true})
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took := make(chan time.Duration, 1)
			cc := rawHTTP2(t, func(framer *http2.Framer) {
				if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headerBlock("200"), EndHeaders: true}) != nil {
					return
				}
				flood(framer, enough/tc.size+1, took, func(i uint32) error { return tc.send(framer, i) })
				_ = framer.WriteData(1, true, []byte(success))
			})
			r := newREST(t, Config{PreferHTTP2: true})
			one := newCall(cc)
			one.Handler.Handler.Timeout = time.Minute
			if _, err := call(t.Context(), r, one); err != nil {
				t.Error(err)
			}
			select {
			case got := <-took:
				if got < 900*time.Millisecond {
					t.Errorf("took %s, want a second", got)
				}
			default:
				t.Error("the PING was not answered")
			}
		})
	}
}

// A connection on which a flood does not end is closed, and the call says why. Interim answers and headers without end
// are refused before.
func TestHTTP2FloodsWithoutEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		send func(*http2.Framer) error
		want string
	}{
		"interim answers": {func(f *http2.Framer) error {
			return f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headerBlock("103"), EndHeaders: true})
		}, "connection broken"},
		"CONTINUATION": {func(f *http2.Framer) error { return f.WriteContinuation(1, false, nil) }, "connection broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cc := rawHTTP2(t, func(framer *http2.Framer) {
				framer.AllowIllegalWrites = true
				if name == "CONTINUATION" && framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headerBlock("200")}) != nil {
					return
				}
				for tc.send(framer) == nil {
				}
			})
			r := newREST(t, Config{PreferHTTP2: true})
			one := newCall(cc)
			one.Handler.Handler.Timeout = time.Minute
			_, err := call(t.Context(), r, one)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Answers of the largest size are no overhead, over HTTP/2 with its window of each call, one after the other and at the
// same time.
func TestHTTP2AnswersAreNoOverhead(t *testing.T) {
	text := `{"status":"Success","message":"` + strings.Repeat("x", 8<<20) + `"}`
	cc := newServer(t, newAuthority(t), answer(text), func(s *httptest.Server) { s.EnableHTTP2 = true }).cc
	r := newREST(t, Config{PreferHTTP2: true})
	began := time.Now()
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			_, err := call(t.Context(), r, newCall(cc))
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	// As overhead, 32 MiB would take a minute.
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
}

// An answer in records of TLS of one byte each is cut as one in such chunks is.
func TestRecordsOfOneByte(t *testing.T) {
	cc := rawServer(t, newAuthority(t), func(c net.Conn) {
		if readRequest(c) != nil {
			return
		}
		if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n"); err != nil {
			return
		}
		for {
			if _, err := c.Write([]byte(" ")); err != nil {
				return
			}
		}
	})
	_, err := call(t.Context(), newREST(t, Config{}), newCall(cc))
	if want := errSmallChunks.Error(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
