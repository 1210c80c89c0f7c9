// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

func TestCall(t *testing.T) {
	cases := map[string]struct {
		reason string
		prefix string
		size   int // of the request's cluster
		path   string
	}{
		"small":        {reason: "a small body is copied", path: "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/v"},
		"large":        {reason: "a large body is not", size: 300_000, path: "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/v"},
		"prefix":       {reason: "the URL's path comes first", prefix: "/a/b", path: "/a/b/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/v"},
		"prefix slash": {reason: "slashes do not double", prefix: "/a//", path: "/a/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/v"},
		"slash":        {reason: "a slash alone is no prefix", prefix: "/", path: "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/v"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *http.Request
			var body []byte
			a := newAuthority(t)
			s := newServer(t, a, func(w http.ResponseWriter, req *http.Request) {
				got = req
				body, _ = io.ReadAll(req.Body)
				_, _ = io.WriteString(w, success)
			}, nil)
			r := newREST(t, Config{})
			s.cc.URL += tc.prefix

			c := newCall(s.cc)
			cluster := `{"kind":"Cluster","x":"` + strings.Repeat("y", tc.size) + `"}`
			c.Request.(*hooksv1alpha1.BeforeClusterCreateRequest).Cluster.Raw = []byte(cluster)
			result, err := r.Call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			want := &hooksv1alpha1.BeforeClusterCreateResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: "fine", RetryAfterSeconds: 7,
			}
			if diff := cmp.Diff(want, result.Response, protocmp.Transform()); diff != "" {
				t.Errorf("answer: -want +got\n%s", diff)
			}

			if got.Method != http.MethodPost || got.URL.Path != tc.path || got.URL.RawQuery != "timeout=30s" {
				t.Errorf("%s: got %s %s, want POST %s?timeout=30s", tc.reason, got.Method, got.URL, tc.path)
			}
			header := http.Header{
				"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "Content-Type": {"application/json"},
				"User-Agent": {"hookgate"}, "Content-Length": {got.Header.Get("Content-Length")},
			}
			if diff := cmp.Diff(header, got.Header); diff != "" {
				t.Errorf("header: -want +got\n%s", diff)
			}
			if got.ContentLength != int64(len(body)) || len(got.TransferEncoding) > 0 {
				t.Errorf("Content-Length %d, Transfer-Encoding %v; body has %d bytes", got.ContentLength, got.TransferEncoding, len(body))
			}
			if !bytes.Contains(body, []byte(`"cluster":`+cluster)) || !bytes.Contains(body, []byte(`"kind":"BeforeClusterCreateRequest"`)) {
				t.Errorf("body: %.200s", body)
			}
			if result.Sent != int64(len(body)) || result.Received != int64(len(success)) {
				t.Errorf("Sent %d, Received %d; want %d, %d", result.Sent, result.Received, len(body), len(success))
			}
		})
	}
}

func TestFailureIsAnAnswer(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(`{"status":"Failure","message":"no","retryAfterSeconds":0}`), nil)
	m := mustCall(t, newREST(t, Config{}), s.cc)
	if m.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE || m.GetMessage() != "no" {
		t.Errorf("answer: %v", m)
	}
}

func TestTimeoutThatTheExtensionIsTold(t *testing.T) {
	cases := map[string]struct {
		reason  string
		handler time.Duration
		left    time.Duration // of the caller's deadline; 0 is none
		want    time.Duration
	}{
		"no deadline":    {reason: "the handler's timeout", handler: 20 * time.Second, want: 20 * time.Second},
		"the timeout":    {reason: "what has passed since the deadline was set does not show", handler: 20 * time.Second, left: 20 * time.Second, want: 20 * time.Second},
		"later deadline": {reason: "the handler's timeout is less", handler: 20 * time.Second, left: time.Minute, want: 20 * time.Second},
		"near deadline":  {reason: "the caller's deadline is less", handler: 30 * time.Second, left: 25 * time.Second, want: 25 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var query string
			var arrived time.Time
			s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
				query, arrived = req.URL.RawQuery, time.Now()
				answer(success)(w, req)
			}, nil)
			r, c := newREST(t, Config{}), newCall(s.cc)
			c.Handler.Handler.Timeout = tc.handler
			ctx, began := t.Context(), time.Now()
			if tc.left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.left)
				defer cancel()
			}
			if _, err := r.Call(ctx, c); err != nil {
				t.Fatal(err)
			}
			// On a busy machine, more than a step may have passed.
			text, ok := strings.CutPrefix(query, "timeout=")
			told, err := time.ParseDuration(text)
			if passed := arrived.Sub(began); !ok || err != nil || told > tc.want || told < tc.want-passed || told%(100*time.Millisecond) != 0 {
				t.Errorf("%s: query %s after %s, want a timeout of %s", tc.reason, query, passed, tc.want)
			}
		})
	}
}

func TestTraceContext(t *testing.T) {
	var parents []string
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		parents = append(parents, req.Header.Get("Traceparent"))
		answer(success)(w, req)
	}, nil)
	ctx := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	for _, p := range []propagation.TextMapPropagator{nil, propagation.TraceContext{}} {
		if _, err := newREST(t, Config{Propagator: p}).Call(ctx, newCall(s.cc)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"", "00-01000000000000000000000000000000-0200000000000000-01"}
	if diff := cmp.Diff(want, parents); diff != "" {
		t.Errorf("traceparent: -want +got\n%s", diff)
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(success), nil)
	large, none := newCall(s.cc), newCall(s.cc)
	none.Request = nil
	if m, err := call(t.Context(), newREST(t, Config{BodyBytes: 100}), large); hook.KindOf(err) != hook.TooLarge {
		t.Errorf("the limit holds for requests: got %v, %v", m, err)
	}
	m, err := call(t.Context(), newREST(t, Config{}), none)
	wantError(t, "no request is a defect", m, err, hook.Internal, `handler "v.acme": call extension: request: message <nil> is nil`)
	if n := s.seen(http.StateNew); n != 0 {
		t.Errorf("%d connections for requests that cannot be sent", n)
	}
}

func TestTimeouts(t *testing.T) {
	a := newAuthority(t)
	cases := map[string]struct {
		reason string
		serve  http.HandlerFunc
	}{
		"nothing": {reason: "no answer at all", serve: func(http.ResponseWriter, *http.Request) {}},
		"header": {reason: "a header, and no body", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			w.(http.Flusher).Flush()
		}},
		"half": {reason: "a body that stops", serve: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, success[:50])
			w.(http.Flusher).Flush()
		}},
		"gzip": {reason: "a compressed body that stops", serve: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zip(t, success)[:20])
			w.(http.Flusher).Flush()
		}},
	}
	for name, tc := range cases {
		for _, h2 := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " http2"}[h2], func(t *testing.T) {
				arrived := make(chan struct{}, 10)
				s := newServer(t, a, func(w http.ResponseWriter, req *http.Request) {
					_, _ = io.Copy(io.Discard, req.Body)
					tc.serve(w, req)
					arrived <- struct{}{}
					<-req.Context().Done()
				}, func(s *httptest.Server) { s.EnableHTTP2 = true })
				r := newREST(t, Config{PreferHTTP2: h2})

				c := newCall(s.cc)
				c.Handler.Handler.Timeout = 500 * time.Millisecond
				m, err := call(t.Context(), r, c)
				wantError(t, tc.reason, m, err, hook.Timeout, `handler "v.acme": call extension: no answer within 500ms`)

				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				m, err = call(ctx, r, newCall(s.cc))
				wantError(t, tc.reason, m, err, hook.Timeout, `handler "v.acme": call extension: no answer before the caller's deadline`)

				ctx, cancel = context.WithCancel(t.Context())
				go func() {
					<-arrived // a request may be late: any of the three will do
					cancel()
				}()
				m, err = call(ctx, r, newCall(s.cc))
				wantError(t, tc.reason, m, err, hook.Canceled, `handler "v.acme": call extension: the caller left`)

				m, err = call(ctx, r, newCall(s.cc))
				wantError(t, "a caller that left before", m, err, hook.Canceled, `handler "v.acme": call extension: the caller left`)
			})
		}
	}
}

// TestMessageIsNotReadAfterTheCall changes the request as soon as the call has ended, although the extension has not
// read it yet. The race detector sees it if something still reads it.
func TestMessageIsNotReadAfterTheCall(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		ctx := deadline{Context: t.Context(), passed: make(chan struct{})}
		s := newServer(t, newAuthority(t), func(_ http.ResponseWriter, req *http.Request) {
			_, _ = req.Body.Read(make([]byte, 1)) // so that a part has been sent
			close(ctx.passed)
			<-t.Context().Done() // the request's own context ends only if the body is read
		}, func(s *httptest.Server) { s.EnableHTTP2 = true })
		r := newREST(t, Config{PreferHTTP2: h2})

		raw := []byte(`"` + strings.Repeat("x", 15<<20) + `"`)
		c := newCall(s.cc)
		c.Request.(*hooksv1alpha1.BeforeClusterCreateRequest).Cluster.Raw = raw
		result, err := r.Call(ctx, c)
		for i := range raw {
			raw[i] = 'y'
		}
		wantError(t, "the server does not read", result.Response, err, hook.Timeout, `handler "v.acme": call extension: no answer before the caller's deadline`)
		if result.Sent == 0 || result.Sent >= int64(len(raw)) {
			t.Errorf("HTTP/2 %t: Sent = %d; the request has %d bytes, and the server stopped in the middle", h2, result.Sent, len(raw))
		}
	}
}

func TestConcurrentCalls(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			// Every answer has what its request had.
			i := bytes.Index(body, []byte(`"name":"`))
			_, _ = io.WriteString(w, `{"status":"Success","message":`+string(body[i+7:i+7+6])+`}`)
		}, func(s *httptest.Server) { s.EnableHTTP2 = true })
		r := newREST(t, Config{PreferHTTP2: h2})
		var calls sync.WaitGroup
		for i := range 16 {
			calls.Go(func() {
				name := "abc" + string(rune('a'+i))
				for range 20 {
					c := newCall(s.cc)
					c.Request.(*hooksv1alpha1.BeforeClusterCreateRequest).Cluster.Raw = []byte(`{"name":"` + name + `"}`)
					result, err := r.Call(t.Context(), c)
					if err != nil {
						t.Errorf("Call: %v", err)
						return
					}
					if got := result.Response.(*hooksv1alpha1.BeforeClusterCreateResponse).GetMessage(); got != name {
						t.Errorf("got the answer of %s, want %s", got, name)
					}
				}
			})
		}
		calls.Wait()
	}
}
