// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

func zipped(t *testing.T, content io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// spaces reads as n spaces: JSON white space, which compresses to almost nothing.
func spaces(n int) io.Reader { return bytes.NewReader(bytes.Repeat([]byte(" "), n)) }

func TestRESTRefusesBadInput(t *testing.T) {
	const prefix = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	tests := map[string]struct {
		reason   string
		method   string
		path     string
		encoding string
		header   http.Header
		body     func(t *testing.T) io.Reader
		code     int
		kind     hook.Kind
		message  string
	}{
		"NotJSON":        {reason: "", body: textBody("hello"), code: 400, kind: hook.InvalidRequest, message: "invalid JSON at byte 0"},
		"EndsEarly":      {reason: "", body: textBody(createBody[:50]), code: 400, kind: hook.InvalidRequest, message: "JSON ends early at byte 50"},
		"Empty":          {reason: "an empty body is not an empty object", body: textBody(""), code: 400, kind: hook.InvalidRequest, message: "empty"},
		"WrongKind":      {body: textBody(`{"kind":"BeforeClusterDeleteRequest"}`), code: 400, kind: hook.InvalidRequest, message: "kind: want BeforeClusterCreateRequest, got BeforeClusterDeleteRequest"},
		"WrongVersion":   {body: textBody(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1beta1"}`), code: 400, kind: hook.InvalidRequest, message: "apiVersion: want hooks.runtime.cluster.x-k8s.io/v1alpha1, got hooks.runtime.cluster.x-k8s.io/v1beta1"},
		"WrongType":      {reason: "the text names the member", body: textBody(`{"settings":{"a":1}}`), code: 400, kind: hook.InvalidRequest, message: `settings["a"]: want a string, got a number`},
		"NoCluster":      {body: textBody(`{}`), code: 400, kind: hook.InvalidRequest, message: "cluster: required"},
		"TooLarge":       {body: func(*testing.T) io.Reader { return struct{ io.Reader }{spaces(21 << 20)} }, code: 413, kind: hook.TooLarge, message: "request body is larger than 20 MiB"},
		"TooLargeByWord": {reason: "the claimed size is enough", body: func(*testing.T) io.Reader { return bytes.NewReader(make([]byte, 25<<20)) }, code: 413, kind: hook.TooLarge, message: "request body is larger than 20 MiB"},
		"GzipBomb": {
			reason: "the limit holds for what the body unpacks to", encoding: "gzip",
			body: func(t *testing.T) io.Reader { return strings.NewReader(strings.Repeat(zipped(t, spaces(1<<20)), 25)) }, code: 413, kind: hook.TooLarge, message: "request body is larger than 20 MiB",
		},
		"NotGzip":          {encoding: "gzip", body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: "request body is not valid gzip"},
		"HalfAGzip":        {encoding: "gzip", body: func(t *testing.T) io.Reader { return strings.NewReader(zipped(t, strings.NewReader(createBody))[:60]) }, code: 400, kind: hook.InvalidRequest, message: "request body ends early"},
		"OtherEncoding":    {encoding: "br", body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: `Content-Encoding is not supported: "br": send gzip, or none`},
		"UnknownHook":      {path: prefix + "beforelunch", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: `no hook "beforelunch": see "hookgate call --help" for their names`},
		"HookMistyped":     {reason: "a name that is nearly one is corrected", path: prefix + "beforeclustercreat", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: `no hook "beforeclustercreat": did you mean "beforeclustercreate"?`},
		"HookInUpperCase":  {path: prefix + "BeforeClusterCreate", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: `no hook at path "/hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeClusterCreate": want /hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate[/<handler>]`},
		"OtherVersion":     {path: "/hooks.runtime.cluster.x-k8s.io/v1/beforeclustercreate", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: "want /hooks.runtime.cluster.x-k8s.io/v1alpha1/<hook>[/<handler>]"},
		"TooManySegments":  {path: prefix + "beforeclustercreate/a/b", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: "no hook at path"},
		"EscapedSlash":     {reason: "an escape does not get round the check", path: prefix + "beforeclustercreate/a%2Fb", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: "no hook at path"},
		"DiscoveryHandler": {path: prefix + "discovery/x", body: textBody("{}"), code: 404, kind: hook.UnknownHook, message: "want /hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"},
		"UnknownHandler":   {path: prefix + "beforeclustercreate/nobody", body: textBody(createBody), code: 404, kind: hook.UnknownHandler, message: `no handler "nobody": the handlers of BeforeClusterCreate are none`},
		"Form": { // what curl -d sends, too
			header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, body: textBody(createBody), code: 400, kind: hook.InvalidRequest,
			message: "Content-Type application/x-www-form-urlencoded is not allowed, because pages of other sites can send it: send application/json",
		},
		"FormWithParams": {header: http.Header{"Content-Type": {" Application/X-WWW-Form-Urlencoded ;a=b"}}, body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: "x-www-form-urlencoded is not allowed"},
		"FormWithFiles":  {header: http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: "multipart/form-data is not allowed"},
		"Text":           {header: http.Header{"Content-Type": {"text/plain;charset=UTF-8"}}, body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: "text/plain is not allowed"},
		"PageOfAnotherSite": {
			header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}, body: textBody(createBody), code: 403, kind: hook.Forbidden,
			message: "pages of other sites may not call hooks: call from a program, or from a page of the gateway",
		},
		"PageOfTheSameSite":    {reason: "another host is not this gateway", header: http.Header{"Sec-Fetch-Site": {"same-site"}, "Content-Type": {"application/json"}}, body: textBody(createBody), code: 403, kind: hook.Forbidden, message: "pages of other sites"},
		"PageInAnOlderBrowser": {reason: "it sends no Sec-Fetch-Site", header: http.Header{"Origin": {"https://evil.example"}}, body: textBody(createBody), code: 403, kind: hook.Forbidden, message: "pages of other sites"},
		"PageWithoutName":      {header: http.Header{"Origin": {"null"}}, body: textBody(createBody), code: 403, kind: hook.Forbidden, message: "pages of other sites"},
		"HandlerOfAnotherHook": {path: prefix + "beforeclustercreate/beforeclusterdelete", body: textBody(createBody), code: 404, kind: hook.UnknownHandler, message: "beforeclusterdelete"},
		"VeryDeep":             {reason: "no parser should follow it", body: textBody(`{"cluster":{"a":` + strings.Repeat("[", 5_000_000) + strings.Repeat("]", 5_000_000) + `}}`), code: 400, kind: hook.InvalidRequest, message: "deep"},
		"Get":                  {method: http.MethodGet, body: textBody(""), code: 405, kind: hook.InvalidRequest, message: "method GET is not allowed: hooks are called with POST"},
		"Timeout":              {path: prefix + "beforeclustercreate?timeout=soon", body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: `query parameter timeout: want a duration such as 10s, got "soon"`},
		"TimeoutZero":          {path: prefix + "beforeclustercreate?timeout=0s", body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: `query parameter timeout: want a duration such as 10s, got "0s"`},
		"TimeoutNegative":      {path: prefix + "beforeclustercreate?timeout=-1s", body: textBody(createBody), code: 400, kind: hook.InvalidRequest, message: `query parameter timeout: want a duration such as 10s, got "-1s"`},
		"TrailingSlash":        {path: prefix + "beforeclustercreate/", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: `want /hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate[/<handler>]`},
		"UnknownGroup":         {path: "/x/v1alpha1/beforeclustercreate", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: "want /hooks.runtime.cluster.x-k8s.io/v1alpha1/<hook>[/<handler>]"},
		"Root":                 {path: "/", body: textBody(createBody), code: 404, kind: hook.UnknownHook, message: `no hook at path "/": want /hooks.runtime.cluster.x-k8s.io/v1alpha1/<hook>[/<handler>]`},
	}
	f := newFixture(t, nil)
	f.registry.SetReady()
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			method, path := http.MethodPost, createPath
			if tc.method != "" {
				method = tc.method
			}
			if tc.path != "" {
				path = tc.path
			}
			req, err := http.NewRequestWithContext(t.Context(), method, f.rest.URL+path, tc.body(t))
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(req.Header, tc.header)
			if tc.encoding != "" {
				req.Header.Set("Content-Encoding", tc.encoding)
			}
			resp, err := f.rest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var answer struct{ APIVersion, Kind, Status, Message string }
			if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
				t.Fatalf("the body is not an answer: %v", err)
			}
			if resp.StatusCode != tc.code || resp.Header.Get(ErrorKindHeader) != tc.kind.String() {
				t.Errorf("%s: got %d %s, want %d %s", tc.reason, resp.StatusCode, resp.Header.Get(ErrorKindHeader), tc.code, tc.kind)
			}
			if !strings.Contains(answer.Message, tc.message) || answer.Status != "Failure" || answer.APIVersion != hook.APIVersion {
				t.Errorf("%s: got %+v, want the message %q", tc.reason, answer, tc.message)
			}
			wantKind := "BeforeClusterCreateResponse"
			if tc.kind == hook.UnknownHook {
				wantKind = ""
			}
			if answer.Kind != wantKind {
				t.Errorf("the answer is a %q, want a %q", answer.Kind, wantKind)
			}
			if tc.code == http.StatusMethodNotAllowed && resp.Header.Get("Allow") != http.MethodPost {
				t.Errorf("405 without Allow: POST")
			}
		})
	}
}

func textBody(s string) func(*testing.T) io.Reader {
	return func(*testing.T) io.Reader { return strings.NewReader(s) }
}

func TestRESTAcceptsWhatCallersSend(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	tests := map[string]struct {
		reason   string
		header   http.Header
		encoding string
	}{
		"NoContentType":  {reason: "Cluster API sends none"},
		"JSON":           {header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}},
		"Gzip":           {encoding: "gzip"},
		"OwnPage":        {header: http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {f.rest.URL}}},
		"TypedURL":       {header: http.Header{"Sec-Fetch-Site": {"none"}}},
		"OlderBrowser":   {reason: "its page is the gateway's own", header: http.Header{"Origin": {f.rest.URL}}},
		"MethodOverride": {reason: "a POST is a POST", header: http.Header{"X-Http-Method-Override": {"GET"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			body := createBody
			if tc.encoding != "" {
				body = zipped(t, strings.NewReader(createBody))
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+createPath+"?timeout=10s", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(req.Header, tc.header)
			if tc.encoding != "" {
				req.Header.Set("Content-Encoding", tc.encoding)
			}
			resp, err := f.rest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: got %s", tc.reason, resp.Status)
			}
		})
	}
}

func TestRESTHonoursTheCallersTimeout(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	resp := f.post(t, createPath+"?timeout=300ms", createBody)
	if resp.code != http.StatusGatewayTimeout || !strings.Contains(string(resp.body), "no answer before the caller's deadline") {
		t.Errorf("got %s: %s", resp.status, resp.body)
	}
}

// sized returns a body of exactly n bytes.
func sized(n int) string {
	const head, tail = `{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","cluster":` + createCluster + `,"pad":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

// 20 MiB are allowed on both fronts, and one byte more is not, however the body comes.
func TestBodiesAtTheLimit(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	client := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn)
	for _, n := range []int{20 << 20, 20<<20 + 1} {
		allowed := n == 20<<20
		body := sized(n)
		for _, encoding := range []string{"", "gzip"} {
			sent := body
			if encoding != "" {
				sent = zipped(t, strings.NewReader(body))
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+createPath, strings.NewReader(sent))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Encoding", encoding)
			resp, err := f.rest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if kind := resp.Header.Get(ErrorKindHeader); allowed && resp.StatusCode != http.StatusOK || !allowed && kind != hook.TooLarge.String() {
				t.Errorf("REST %q: %d bytes are answered with %s %s", encoding, n, resp.Status, kind)
			}
		}
		m := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n"), Settings: map[string]string{"pad": ""}}
		// The lengths of the value and of the entry that holds it take four bytes each in place of one.
		m.Settings["pad"] = strings.Repeat("x", n-proto.Size(m)-6)
		if proto.Size(m) != n {
			t.Fatalf("the message has %d bytes, want %d", proto.Size(m), n)
		}
		_, err := client.BeforeClusterCreate(t.Context(), m, grpc.MaxCallSendMsgSize(64<<20))
		if code := status.Code(err); allowed && err != nil || !allowed && code != codes.ResourceExhausted {
			t.Errorf("gRPC: %d bytes are answered with %v", n, err)
		}
	}
}

// Both fronts count what callers send and get, by hook and kind of the error.
func TestRequestsAreCounted(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	resp := f.post(t, createPath, createBody)
	refused := f.post(t, createPath, "{}")
	unknown := f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforelunch", "{}")
	near := f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/BeforeClusterCreate", "{}")
	client := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn)
	req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")}
	answer, err := client.BeforeClusterCreate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{}); err == nil {
		t.Error("a request without a Cluster is answered")
	}
	f.rest.Close() // calls are counted when they end
	f.stop()
	const h = "BeforeClusterCreate"
	wantCount(t, f.metrics, "hookgate_requests_total", 1, "REST", h, "")
	wantCount(t, f.metrics, "hookgate_requests_total", 1, "REST", h, "InvalidRequest")
	wantCount(t, f.metrics, "hookgate_requests_total", 1, "REST", "unknown", "UnknownHook")
	wantCount(t, f.metrics, "hookgate_requests_total", 1, "REST", h, "UnknownHook")
	wantCount(t, f.metrics, "hookgate_requests_total", 1, "gRPC", h, "")
	wantCount(t, f.metrics, "hookgate_requests_total", 1, "gRPC", h, "InvalidRequest")
	wantCount(t, f.metrics, "hookgate_request_received_bytes_total", float64(len(createBody)+2), "REST", h)
	wantCount(t, f.metrics, "hookgate_request_sent_bytes_total", float64(len(resp.body)+len(refused.body)+len(near.body)), "REST", h)
	wantCount(t, f.metrics, "hookgate_request_sent_bytes_total", float64(len(unknown.body)), "REST", "unknown")
	wantCount(t, f.metrics, "hookgate_request_received_bytes_total", float64(proto.Size(req)), "gRPC", h)
	wantCount(t, f.metrics, "hookgate_request_sent_bytes_total", float64(proto.Size(answer)), "gRPC", h)
	for _, protocol := range []string{"REST", "gRPC"} {
		wantCount(t, f.metrics, "hookgate_requests_in_flight", 0, protocol)
	}
}

// The services answer only what a front has received.
func TestServicesWantAFront(t *testing.T) {
	s := NewServices(newDispatcher(filled(t), fixedNamespaces{}, answers{}))
	_, err := s.answer(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
	if hook.KindOf(err) != hook.Internal || err == nil {
		t.Errorf("got %v, want an error of kind Internal", err)
	}
}
