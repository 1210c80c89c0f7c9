// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sideserver

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/devcert"
)

// TestServerAnswersWhatWasAsked: requests that arrived before the shutdown are answered.
func TestServerAnswersWhatWasAsked(t *testing.T) {
	pair, err := devcert.New(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	config, err := pair.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	began, end := make(chan struct{}), make(chan struct{})
	s := New(Config{Name: "webhooks", Address: "127.0.0.1:0", TLS: config, Logger: slog.New(slog.DiscardHandler), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
