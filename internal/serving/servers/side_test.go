// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/overhead"
	"github.com/hookgate/hookgate/test/certificates"
)

// An answer of a process that is about to end is the last one of its connection.
func TestEndingServerKeepsNoConnection(t *testing.T) {
	pair := certificates.New(t)
	ending := false
	s := NewSide(SideConfig{
		Name: "webhooks", Address: "127.0.0.1:0", TLS: certificates.Server(t, pair), Logger: slog.New(slog.DiscardHandler),
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Ending: func() bool { return ending },
	})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	transport := &http.Transport{TLSClientConfig: pair.ClientTLS()} // as the API server has: HTTP/1.1
	defer transport.CloseIdleConnections()
	for _, ending = range []bool{false, true} {
		response, err := (&http.Client{Transport: transport}).Get("https://" + s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.Close != ending {
			t.Errorf("ending: %t; the connection closes: %t", ending, response.Close)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestServerAnswersWhatWasAsked: requests that arrived before the shutdown are answered.
func TestServerAnswersWhatWasAsked(t *testing.T) {
	pair := certificates.New(t)
	config := certificates.Server(t, pair)
	began, end := make(chan struct{}), make(chan struct{})
	s := NewSide(SideConfig{Name: "webhooks", Address: "127.0.0.1:0", TLS: config, Logger: slog.New(slog.DiscardHandler), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-end
		_, _ = io.WriteString(w, "answered")
	})})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	transport := &http.Transport{TLSClientConfig: pair.ClientTLS()}
	defer transport.CloseIdleConnections()
	answer := make(chan string, 1)
	go func() {
		response, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Get("https://" + s.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body) // what was read is compared
		answer <- string(body)
	}()
	<-began
	stop()
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			break // it takes no more
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("the server still takes connections")
		}
	}
	close(end)
	if got := <-answer; got != "answered" {
		t.Errorf("got %s", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// A connection that sends much besides its requests, and has no turn for that, is closed.
func TestFloodsEndConnectionsOfASide(t *testing.T) {
	pair := certificates.New(t)
	serving := certificates.Server(t, pair)
	side := NewSide(SideConfig{
		Name: "webhooks", Address: "127.0.0.1:0", TLS: serving, Handler: http.NotFoundHandler(), Logger: slog.New(slog.DiscardHandler),
	})
	if err := side.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	side.listener.bucket = new(overhead.Bucket)
	ended := make(chan error, 1)
	go func() { ended <- side.Run(context.Background()) }()
	defer func() {
		if err := errors.Join(side.Close(), <-ended); err != nil {
			t.Error(err)
		}
	}()
	config := pair.ClientTLS()
	config.NextProtos = []string{"h2"}
	c, err := tls.Dial("tcp", side.Addr().String(), config)
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
