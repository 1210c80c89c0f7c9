// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connlimit

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/hookgate/hookgate/internal/devcert"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/overhead"
)

// startBound starts a server that reads whatever it is sent, and on which no connection has a turn to send something
// besides requests.
func startBound(t *testing.T) (address string, client *tls.Config) {
	t.Helper()
	pair, err := devcert.New(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	config, err := pair.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := New(plain, "webhooks", slog.New(slog.DiscardHandler))
	l.turns = new(overhead.Turns)
	server := &http.Server{TLSConfig: config, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})}
	l.Bound(server)
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(l, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return plain.Addr().String(), pair.ClientTLS()
}

// Requests need no turn, large ones and many at a time.
func TestRequestsAreNoOverhead(t *testing.T) {
	address, config := startBound(t)
	for name, second := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: config.Clone(), Protocols: new(http.Protocols)}
			transport.Protocols.SetHTTP1(!second)
			transport.Protocols.SetHTTP2(second)
			defer transport.CloseIdleConnections()
			post := func(size int) {
				resp, err := (&http.Client{Transport: transport}).Post("https://"+address, "application/json", bytes.NewReader(make([]byte, size)))
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
			}
			for range 3 {
				post(4 << 20)
			}
			var requests sync.WaitGroup
			for range limits.SideHostConnections / 2 {
				requests.Go(func() { post(16 << 10) })
			}
			requests.Wait()
		})
	}
}

func TestFloodsEndConnections(t *testing.T) {
	address, config := startBound(t)
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", address, config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	frames := bytes.NewBufferString(http2.ClientPreface)
	framer := http2.NewFramer(frames, nil)
	_ = framer.WriteSettings()
	for frames.Len() < 2*limits.OverheadBytes {
		if err := framer.WritePriority(1, http2.PriorityParam{}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = c.Write(frames.Bytes())
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection stays open")
	}
}
