// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestResetsAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		l := forFront(nil, "REST", 1<<20, slog.New(slog.DiscardHandler))
		c := l.newConn(ours)
		if !l.admit(c) {
			t.Fatal("not admitted")
		}
		for range limits.Resets {
			c.wasReset()
		}
		time.Sleep(time.Second)
		for range limits.ResetsPerSecond {
			c.wasReset()
		}
		if c.cut.Load() || len(l.open) != 1 {
			t.Fatal("the connection is cut at the limit")
		}
		c.wasReset()
		if !c.cut.Load() || len(l.open) != 0 {
			t.Error("the connection stays beyond the limit")
		}
		if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("its peer got %v", err)
		}
	})
}

// resetter resets streams of HTTP/2.
type resetter struct {
	*http2.Framer
	conn    net.Conn
	header  bytes.Buffer
	encoder *hpack.Encoder
	stream  uint32
}

func newResetter(t *testing.T, address string, config *tls.Config) *resetter {
	t.Helper()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	r := &resetter{Framer: http2.NewFramer(conn, conn), conn: conn, stream: 1}
	r.encoder = hpack.NewEncoder(&r.header)
	_, err = io.WriteString(conn, http2.ClientPreface)
	if err == nil {
		err = r.WriteSettings()
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reset opens streams and resets them, and waits until the server has seen that.
func (r *resetter) reset(streams int) error {
	for range streams {
		r.header.Reset()
		for _, f := range [][2]string{
			{":method", "POST"}, {":scheme", "https"}, {":authority", "a"}, {":path", "/a.B/C"},
			{"content-type", "application/grpc"}, {"te", "trailers"},
		} {
			_ = r.encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		err := r.WriteHeaders(http2.HeadersFrameParam{StreamID: r.stream, BlockFragment: r.header.Bytes(), EndHeaders: true})
		if err == nil {
			err = r.WriteRSTStream(r.stream, http2.ErrCodeCancel)
		}
		if err != nil {
			return err
		}
		r.stream += 2
	}
	if err := r.WritePing(false, [8]byte{1}); err != nil {
		return err
	}
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return err
		}
		if ping, ok := f.(*http2.PingFrame); ok && ping.IsAck() {
			return nil
		}
	}
}

// A connection whose caller resets more calls than it may is closed, over JSON and gRPC, and one whose caller gives up
// all its calls at once stays.
func TestConnectionsWithTooManyResetsAreClosed(t *testing.T) {
	server := startServer(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	for name, address := range map[string]string{"REST": server.http, "gRPC": server.grpc} {
		t.Run(name, func(t *testing.T) {
			r := newResetter(t, address, server.tls)
			if err := r.reset(limits.Streams / 2); err != nil {
				t.Fatalf("a caller that gives up: %v", err)
			}
			var err error
			for range 20 * limits.Resets / 10 {
				if err = r.reset(10); err != nil {
					break
				}
			}
			if err == nil || errors.Is(err, http2.ErrFrameTooLarge) {
				t.Errorf("after %d resets: %v, want the connection closed", r.stream/2, err)
			}
			if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
				t.Errorf("the connection hangs: %v", err)
			}
		})
	}
}
