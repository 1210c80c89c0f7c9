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
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/devcert"
)

func TestRequestsAreBounded(t *testing.T) {
	var read error
	h := limited(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, read = io.ReadAll(r.Body) }), 4, make(chan struct{}, 1))
	for body, fits := range map[string]bool{"1234": true, "12345": false} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if (read == nil) != fits {
			t.Errorf("body of %d bytes, of which 4 are let through: %v", len(body), read)
		}
	}
}

func TestRequestsWaitForAPlace(t *testing.T) { synctest.Test(t, requestsWaitForAPlace) }

func requestsWaitForAPlace(t *testing.T) {
	running, end := 0, make(chan struct{})
	h := limited(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		running++
		<-end
		running--
	}), 1, make(chan struct{}, 1))
	serve := func(ctx context.Context) {
		go h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/", nil))
		synctest.Wait()
	}
	serve(t.Context())
	impatient, leave := context.WithCancel(t.Context())
	serve(impatient)
	leave() // which must not take the place later
	serve(t.Context())
	if running != 1 {
		t.Errorf("%d requests have the one place", running)
	}
	end <- struct{}{}
	synctest.Wait()
	if running != 1 {
		t.Errorf("%d requests have the place that was left", running)
	}
	end <- struct{}{}
	synctest.Wait()
	if running != 0 {
		t.Errorf("%d requests are still there: the one whose client left has taken the place", running)
	}
}

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
