// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// send calls the gateway with any method, headers and body.
func (g *gateway) send(t testing.TB, method, path string, header http.Header, body io.Reader) answer {
	t.Helper()
	request, err := http.NewRequest(method, "https://"+g.HTTPS+path, body)
	if err != nil {
		t.Fatalf("create request: %v", err)
	}
	maps.Copy(request.Header, header)
	got, err := do(g.client, request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return got
}

// startQuiet starts a gateway with one stub that accepts every cluster, patch and update.
func startQuiet(t *testing.T) (*gateway, *stub) {
	t.Helper()
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	s.serve("BeforeClusterCreate", "check", handlerOptions{ignore: true}, success("fine"))
	s.serve("GeneratePatches", "patch", handlerOptions{}, say(`{"status":"Success"}`))
	s.serve("UpdateMachine", "update", handlerOptions{}, say(`{"status":"Success","retryAfterSeconds":0}`))
	g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)})
	g.awaitHandler(t, "ready--s")
	return g, s
}

func TestBadInput(t *testing.T) {
	g, s := startQuiet(t)
	const head = `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":`
	for name, tc := range map[string]struct {
		reason, hook, body string
		code               int
		message            []string // parts of the message
	}{
		"not JSON":         {"nothing to decode", "BeforeClusterCreate", "hello", http.StatusBadRequest, nil},
		"wrong kind":       {"a request of another hook", "BeforeClusterCreate", head + `"BeforeClusterDeleteRequest","cluster":{}}`, http.StatusBadRequest, []string{"kind"}},
		"setting not text": {"the message names the member", "BeforeClusterCreate", head + `"BeforeClusterCreateRequest","settings":{"tier":7},"cluster":{}}`, http.StatusBadRequest, []string{"settings", "tier"}},
		"uid not text":     {"the message names the member, below a list", "GeneratePatches", head + `"GeneratePatchesRequest","items":[{"uid":5}]}`, http.StatusBadRequest, []string{"items", "uid"}},
		"very deep":        {"deeper than any parser should follow", "BeforeClusterCreate", head + `"BeforeClusterCreateRequest","cluster":{"a":` + strings.Repeat("[", 5_000_000) + strings.Repeat("]", 5_000_000) + `}}`, http.StatusBadRequest, nil},
		"25 MiB":           {"more than the limit", "BeforeClusterCreate", head + `"BeforeClusterCreateRequest","cluster":{"a":"` + strings.Repeat("x", 25<<20) + `"}}`, http.StatusRequestEntityTooLarge, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.count("BeforeClusterCreate", "check")
			first := g.post(t, path(tc.hook, ""), []byte(tc.body))
			message := checkFailure(t, tc.hook, first, tc.code)
			for _, part := range tc.message {
				if !strings.Contains(message, part) {
					t.Errorf("message %q does not name %s (%s)", message, part, tc.reason)
				}
			}
			if s.count("BeforeClusterCreate", "check") != before {
				t.Errorf("the extension was called (%s)", tc.reason)
			}
			if again := g.post(t, path(tc.hook, ""), []byte(tc.body)); !bytes.Equal(first.body, again.body) {
				t.Errorf("the second answer differs:\n%s\n%s", first.body, again.body)
			}
		})
	}
	if code := g.Ready(t.Context()); code != http.StatusOK {
		t.Errorf("/readyz answers %d after bad input", code)
	}
	if got := g.post(t, path("BeforeClusterCreate", ""), samples.S()); got.code != http.StatusOK {
		t.Errorf("a good call answers %d after bad input: %s", got.code, got.body)
	}
}

// An HTTP/1.1 caller is still writing when the answer comes, and must be able to read it.
func TestBadInputTooLargeOverHTTP11(t *testing.T) {
	g, _ := startQuiet(t)
	client := http11(t, g.authority)
	for range 5 {
		got, err := try(client, "https://"+g.HTTPS+path("BeforeClusterCreate", ""),
			[]byte(`{"cluster":{"a":"`+strings.Repeat("x", 25<<20)+`"}}`))
		if err != nil {
			t.Fatalf("the caller sees a broken connection instead of 413: %v", err)
		}
		checkFailure(t, "BeforeClusterCreate", got, http.StatusRequestEntityTooLarge)
	}
}

func TestBadInputUnknownPaths(t *testing.T) {
	g, _ := startQuiet(t)
	for name, tc := range map[string]struct {
		path, hook string
		message    string
	}{
		"handler":                {path("BeforeClusterCreate", "nobody"), "BeforeClusterCreate", "nobody"},
		"handler of other hook":  {path("BeforeClusterCreate", "patch--s"), "BeforeClusterCreate", "patch"},
		"aggregate of other":     {path("BeforeClusterCreate", "beforeclusterdelete"), "BeforeClusterCreate", "beforeclusterdelete"},
		"registered, wrong name": {path("GeneratePatches", "patch.other"), "GeneratePatches", "patch.other"},
	} {
		t.Run(name, func(t *testing.T) {
			body := samples.S()
			if tc.hook != "" {
				body = samples.Body(tc.hook)
			}
			message := checkFailure(t, tc.hook, g.post(t, tc.path, body), http.StatusNotFound)
			if !strings.Contains(message, tc.message) {
				t.Errorf("message %q does not name %q", message, tc.message)
			}
		})
	}
}

func TestBadInputMethods(t *testing.T) {
	g, s := startQuiet(t)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		for name, p := range map[string]string{"without handler": path("BeforeClusterCreate", ""), "with handler": path("BeforeClusterCreate", "check.s")} {
			t.Run(method+" "+name, func(t *testing.T) {
				got := g.send(t, method, p, nil, bytes.NewReader(samples.S()))
				checkFailure(t, "BeforeClusterCreate", got, http.StatusMethodNotAllowed)
				if allow := got.header.Get("Allow"); allow != http.MethodPost {
					t.Errorf("Allow: %q, want POST", allow)
				}
			})
		}
	}
	t.Run("POST that asks for another method", func(t *testing.T) {
		got := g.send(t, http.MethodPost, path("BeforeClusterCreate", "check.s"),
			http.Header{"X-Http-Method-Override": {"GET"}}, bytes.NewReader(samples.S()))
		if got.code != http.StatusOK {
			t.Errorf("status %d: %s", got.code, got.body)
		}
	})
	if n := s.count("BeforeClusterCreate", "check"); n != 1 {
		t.Errorf("the extension was called %d times, want once", n)
	}
}

func TestContentTypes(t *testing.T) {
	g, s := startQuiet(t)
	for name, header := range map[string]http.Header{
		"none":             nil, // what Cluster API sends
		"JSON":             {"Content-Type": {"application/json"}},
		"with params":      {"Content-Type": {"application/json; charset=utf-8"}, "Accept": {"application/json, */*"}},
		"of its own page":  {"Sec-Fetch-Site": {"same-origin"}, "Origin": {"https://" + g.HTTPS}, "Content-Type": {"application/json"}},
		"of a typed URL":   {"Sec-Fetch-Site": {"none"}},
		"an older browser": {"Origin": {"https://" + g.HTTPS}, "Content-Type": {"application/json"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := g.send(t, http.MethodPost, path("BeforeClusterCreate", ""), header, bytes.NewReader(samples.S()))
			if got.code != http.StatusOK {
				t.Fatalf("status %d: %s", got.code, got.body)
			}
			if contentType := got.header.Get("Content-Type"); !strings.HasPrefix(contentType, "application/json") {
				t.Errorf("the answer has Content-Type %q", contentType)
			}
			if out := asCaller(t, "BeforeClusterCreate", got.body); out.GetMessage() != "fine" {
				t.Errorf("message %q", out.GetMessage())
			}
		})
	}
	called := s.count("BeforeClusterCreate", "check")
	const form = "Content-Type application/x-www-form-urlencoded is not allowed, because pages of other sites can send it: " +
		"send application/json"
	const page = "pages of other sites may not call hooks: call from a program, or from a page of the gateway"
	for name, tc := range map[string]struct {
		header  http.Header
		code    int
		message string
	}{
		"a form":               {http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 400, form}, // curl -d, too
		"a form with params":   {http.Header{"Content-Type": {" Application/X-WWW-Form-Urlencoded ;a=b"}}, 400, form},
		"a form with files":    {http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, 400, "multipart/form-data"},
		"text":                 {http.Header{"Content-Type": {"text/plain;charset=UTF-8"}}, 400, "text/plain"},
		"another site":         {http.Header{"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://evil.example"}}, 403, page},
		"another host of ours": {http.Header{"Sec-Fetch-Site": {"same-site"}, "Content-Type": {"application/json"}}, 403, page},
		"an older browser":     {http.Header{"Origin": {"https://evil.example"}}, 403, page},
		"a page without name":  {http.Header{"Origin": {"null"}}, 403, page},
	} {
		t.Run("refused/"+name, func(t *testing.T) {
			got := g.send(t, http.MethodPost, path("BeforeClusterCreate", ""), tc.header, bytes.NewReader(samples.S()))
			if message := checkFailure(t, "BeforeClusterCreate", got, tc.code); !strings.Contains(message, tc.message) {
				t.Errorf("message %q, want %q", message, tc.message)
			}
		})
	}
	if n := s.count("BeforeClusterCreate", "check"); n != called {
		t.Errorf("the extension was called %d times for web pages of others", n-called)
	}
}

// Cluster API's server ignores kind and apiVersion, so some callers omit them.
func TestKindMayBeAbsent(t *testing.T) {
	g, s := startQuiet(t)
	got := g.post(t, path("BeforeClusterCreate", "check.s"),
		[]byte(`{"cluster":{"metadata":{"name":"c","namespace":"n"}}}`))
	if out := asCaller(t, "BeforeClusterCreate", got.body); got.code != http.StatusOK ||
		out.GetStatus() != runtimehooksv1.ResponseStatusSuccess {
		t.Fatalf("status %d: %s", got.code, got.body)
	}
	if m := decodeMembers(t, s.last("BeforeClusterCreate", "check")); m["kind"] != "BeforeClusterCreateRequest" {
		t.Errorf("the extension got kind %v", m["kind"])
	}
}

// Unusual but valid input is accepted.
func TestUnusualInput(t *testing.T) {
	g, s := startQuiet(t)
	status := samples.Request("BeforeClusterCreate").(*runtimehooksv1.BeforeClusterCreateRequest)
	status.Cluster = samples.ClusterWithStatus()
	for name, body := range map[string]string{
		"a cluster with status": string(samples.Marshal(status)),
		"space everywhere":      " \r\n\t{ \"cluster\" : { \"metadata\" : { \"name\" : \"c\" } } , \"settings\" : { } } \n",
		"escaped member names":  `{"clust\u0065r":{"metadata":{"name":"c"}}}`,
		"null settings":         `{"settings":null,"cluster":{"metadata":{"name":"c"}}}`,
		"members in any order":  `{"cluster":{"metadata":{"name":"c"}},"kind":"BeforeClusterCreateRequest","settings":{"a":"b"},"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"}`,
		"a million numbers":     `{"cluster":{"metadata":{"name":"c"},"list":[0` + strings.Repeat(",1", 1_000_000) + `]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			got := g.post(t, path("BeforeClusterCreate", "check.s"), []byte(body))
			if got.code != http.StatusOK {
				t.Fatalf("status %d: %.500s", got.code, got.body)
			}
			var sent, received struct{ Cluster json.RawMessage }
			if err := json.Unmarshal([]byte(body), &sent); err != nil {
				t.Fatalf("the body of the test: %v", err)
			}
			if err := json.Unmarshal(s.last("BeforeClusterCreate", "check"), &received); err != nil {
				t.Fatalf("the extension got bad JSON: %v", err)
			}
			if !bytes.Equal(sent.Cluster, received.Cluster) {
				t.Errorf("the cluster is not there byte for byte: %.300s", received.Cluster)
			}
		})
	}
}
