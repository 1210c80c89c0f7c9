// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/devcert"
)

func TestPanicsAreAnswered(t *testing.T) {
	log := &bytes.Buffer{}
	h := recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("spilled") }), slog.New(slog.NewTextHandler(log, nil)))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/convert", nil))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "spilled") {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "panic=spilled") || !strings.Contains(log.String(), "path=/convert") {
		t.Errorf("logged %s", log)
	}
}

func TestGarbageIsNoReasonToEnd(t *testing.T) {
	h := handler(t)
	for _, path := range []string{ConvertPath, MutatePath(group), ValidatePath(group), PolicyPath()} {
		for _, body := range []string{"", "{", "[]", "null", "{}", `{"request":{}}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":1}}`} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError || strings.Contains(w.Body.String(), `"allowed":true`) {
				t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
			}
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ConvertPath, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}

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
	s := NewServer(ServerConfig{Address: "127.0.0.1:0", TLS: config, Logger: slog.New(slog.DiscardHandler), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
