// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// newStreams returns a recorder without files, and a server of its streams.
func newStreams(t *testing.T) (*recorder, *httptest.Server) {
	t.Helper()
	r := newRecorder(t)
	r.config.Files.Close()
	r.config.Files = nil
	r.config.Registered = func(handler string) (string, error) {
		if !strings.EqualFold(handler, "h.acme") {
			return "", errors.New("there is no such handler")
		}
		return "h.acme", nil
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Cleanup(r.run(t))
	return r, server
}

// record begins a stream, and returns the status of HTTP and the lines.
func record(t *testing.T, server *httptest.Server, o Order) (status int, lines *bufio.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+Path+"?"+o.Query().Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response.StatusCode, bufio.NewReader(response.Body)
}

// nextLine returns the next line that is as wanted: a Progress, or a call.
func nextLine(t *testing.T, lines *bufio.Reader, progress bool) string {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, is := ProgressOf([]byte(line)); is == progress {
			return line
		}
	}
}

// A stream has the calls of its handler alone, without secrets, while it lasts; nothing else is recorded.
func TestStream(t *testing.T) {
	r, server := newStreams(t)
	call := func(handler string) {
		t.Helper()
		c := r.call
		c.Handler = &registry.Entry{Name: handler, Handler: c.Handler.Handler, Registration: c.Handler.Registration}
		if err := r.do(t.Context(), c, answerOf(handler), nil); err != nil {
			t.Fatal(err)
		}
	}
	call("h.acme") // nobody reads yet
	_, lines := record(t, server, Order{Handler: "H.acme", For: time.Hour, Bytes: 1 << 20})
	nextLine(t, lines, true)
	call("other.acme")
	call("h.acme")
	got, _, err := NewReader("stream", strings.NewReader(nextLine(t, lines, false))).Next()
	if err != nil || got.Handler != "h.acme" || string(got.Request) != `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1",`+
		`"kind":"BeforeClusterCreateRequest","cluster":{"password":"***"}}` {
		t.Errorf("got %+v, %v", got, err)
	}
	if said := nextLine(t, lines, true); said != "# {\"recorded\":1,\"dropped\":0}\n" {
		t.Errorf("got %s", said)
	}
}

// A stream ends by itself, after its last line says why.
func TestStreamEnds(t *testing.T) {
	r, server := newStreams(t)
	_, lines := record(t, server, Order{Handler: "h.acme", For: time.Nanosecond, Bytes: 1})
	if text, err := io.ReadAll(lines); err != nil || !strings.HasSuffix(string(text), "# {\"recorded\":0,\"dropped\":0,\"ended\":\"time\"}\n") {
		t.Errorf("got %s, %v", text, err)
	}
	_, lines = record(t, server, Order{Handler: "h.acme", For: time.Hour, Bytes: 1})
	nextLine(t, lines, true)
	if err := r.do(t.Context(), r.call, answerOf(""), nil); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(lines); err != nil || string(text) != "# {\"recorded\":0,\"dropped\":0,\"ended\":\"bytes\"}\n" {
		t.Errorf("got %s, %v", text, err)
	}
	waitFor(t, func() bool { return r.streams.Load() == nil })
}

// Readers who do not read lose calls, which are counted, and keep none waiting. Their number is bounded.
func TestSlowReader(t *testing.T) {
	r, server := newStreams(t)
	s, ok := r.begin(Order{Handler: "h.acme", Bytes: 1 << 30})
	if !ok {
		t.Fatal("there is no room for a stream")
	}
	big := r.call
	big.Body = []byte(`{"kind":"BeforeClusterCreateRequest","cluster":{"a":"` + strings.Repeat("a", 1<<20) + `"}}`)
	const calls = limits.RecordStreamBytes>>20 + 5
	for range calls {
		if err := r.do(t.Context(), big, answerOf(""), nil); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.progress.Recorded+s.progress.Dropped == calls
	})
	if n := r.of(SlowReader); n == 0 {
		t.Error("no call was dropped")
	}
	for range limits.RecordStreams - 1 {
		_, lines := record(t, server, Order{Handler: "h.acme", For: time.Hour, Bytes: 1})
		nextLine(t, lines, true)
	}
	if status, _ := record(t, server, Order{Handler: "h.acme", For: time.Hour, Bytes: 1}); status != http.StatusServiceUnavailable {
		t.Errorf("one more stream has status %d", status)
	}
}

func TestRefusedStreams(t *testing.T) {
	_, server := newStreams(t)
	for name, tc := range map[string]struct {
		order  Order
		status int
		want   string
	}{
		"handler": {Order{"x.acme", time.Hour, 1}, 404, "there is no such handler"},
		"none":    {Order{"", time.Hour, 1}, 400, "want the name of a handler"},
		"time":    {Order{"h.acme", limits.RecordStreamTime + 1, 1}, 400, "want a duration of at most 24h0m0s"},
		"bytes":   {Order{"h.acme", time.Hour, 0}, 400, "want at most 1024 MiB"},
	} {
		status, lines := record(t, server, tc.order)
		if text, _ := io.ReadAll(lines); status != tc.status || strings.TrimSpace(string(text)) != tc.want {
			t.Errorf("%s: got %d %s", name, status, text)
		}
	}
}
