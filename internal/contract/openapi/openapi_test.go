// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gen/openapi"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
)

// The groups of the documents that the tests serve.
const (
	firstGroup = "hooks.runtime.cluster.x-k8s.io"
	otherGroup = "infrastructure.hookgate.dev"
)

// newHandler returns a Handler of two documents.
func newHandler(next http.HandlerFunc) (*Handler, error) {
	text := func(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }
	return New(next, Document{firstGroup, text(openapi.Document)}, Document{otherGroup, text(openapi.Infrastructure)})
}

// serve returns the response of a Handler whose next handler is a teapot.
func serve(t *testing.T, method, path string, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	h, err := newHandler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(method, path, nil)
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestEveryFileIsServedPlainAndCompressed(t *testing.T) {
	for path, c := range map[string]struct{ contentType, has string }{
		DocumentPath:          {"application/json", `"openapi": "3.0.3"`},
		PathOf(otherGroup):    {"application/json", "reconcilemachine"},
		Prefix:                {"text/html; charset=utf-8", `src="./page.js"`},
		Prefix + "index.html": {"text/html; charset=utf-8", `<a href="./infrastructure.hookgate.dev/">`},
		Prefix + otherGroup + "/": {"text/html; charset=utf-8",
			`<a href="../infrastructure.hookgate.dev/" aria-current="page">`},
		Prefix + otherGroup + "/index.html": {"text/html; charset=utf-8", `src="../page.js"`},
		Prefix + "page.js":                  {"text/javascript; charset=utf-8", "SwaggerUIBundle("},
		Prefix + "page.css":                 {"text/css; charset=utf-8", "margin"},
		Prefix + "lifecycle.svg":            {"image/svg+xml", "BeforeClusterCreate"},
		Prefix + "swagger-ui-bundle.js":     {"text/javascript; charset=utf-8", "SwaggerUIBundle"},
		Prefix + "swagger-ui.css":           {"text/css; charset=utf-8", ".swagger-ui"},
		Prefix + "favicon-32x32.png":        {"image/png", "PNG"},
	} {
		t.Run(path, func(t *testing.T) {
			plain := serve(t, http.MethodGet, path, nil)
			text := plain.Body.Bytes()
			if plain.Code != http.StatusOK || plain.Header().Get("Content-Type") != c.contentType ||
				plain.Header().Get("Content-Encoding") != "" {
				t.Errorf("GET: status %d, %v", plain.Code, plain.Header())
			}
			if !bytes.Contains(text, []byte(c.has)) {
				t.Errorf("GET: %d bytes without %q", len(text), c.has)
			}
			compressed := serve(t, http.MethodGet, path, http.Header{"Accept-Encoding": {"br, gzip;q=0.5"}})
			if compressed.Header().Get("Content-Encoding") != "gzip" ||
				compressed.Header().Get("ETag") != plain.Header().Get("ETag") {
				t.Fatalf("GET with gzip: %v, want the tag %s", compressed.Header(), plain.Header().Get("ETag"))
			}
			r, err := gzip.NewReader(compressed.Body)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := io.ReadAll(r); err != nil || !bytes.Equal(again, text) {
				t.Errorf("GET with gzip: %d bytes, %v; want the %d bytes that there are without", len(again), err,
					len(text))
			}
			for _, name := range []string{"Content-Security-Policy", "X-Content-Type-Options", "Cache-Control",
				"Vary"} {
				if plain.Header().Get(name) == "" {
					t.Errorf("GET: no header %s", name)
				}
			}
			if policy := plain.Header().Get("Content-Security-Policy"); !strings.Contains(policy,
				"default-src 'none'") || strings.Contains(policy, "http") {
				t.Errorf("GET: the policy %q lets the page load from elsewhere", policy)
			}
		})
	}
}

func TestUnchangedFilesAreNotModified(t *testing.T) {
	tag := serve(t, http.MethodGet, DocumentPath, nil).Header().Get("ETag")
	for name, c := range map[string]struct {
		value string
		want  int
	}{
		"the tag":           {tag, http.StatusNotModified},
		"one of several":    {`W/"other", ` + tag, http.StatusNotModified},
		"the tag, strong":   {strings.TrimPrefix(tag, "W/"), http.StatusNotModified},
		"any":               {"*", http.StatusNotModified},
		"another":           {`W/"other"`, http.StatusOK},
		"a part of the tag": {tag[:10], http.StatusOK},
	} {
		r := serve(t, http.MethodGet, DocumentPath, http.Header{"If-None-Match": {c.value}})
		if r.Code != c.want {
			t.Errorf("%s: status %d, want %d", name, r.Code, c.want)
		}
		if r.Code == http.StatusNotModified && r.Body.Len() > 0 {
			t.Errorf("%s: 304 with %d bytes", name, r.Body.Len())
		}
	}
}

func TestGzipNeedsAcceptEncoding(t *testing.T) {
	for value, want := range map[string]string{
		"": "", "br": "", "gzip;q=0": "", "gzip; q=0.0": "", "gzip;q=x": "", "gzipped": "",
		"gzip": "gzip", "br, gzip": "gzip", "gzip;q=1.0": "gzip", "gzip; q=0.1": "gzip",
	} {
		if got := serve(t, http.MethodGet, DocumentPath,
			http.Header{"Accept-Encoding": {value}}).Header().Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: %q, want %q", value, got, want)
		}
	}
}

func TestOtherPathsAndMethods(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		want         int
	}{
		"a hook": {http.MethodPost, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery",
			http.StatusTeapot},
		"no file":                       {http.MethodGet, Prefix + "swagger.json", http.StatusTeapot},
		"a file that is not the page's": {http.MethodGet, Prefix + "swagger-ui.js", http.StatusTeapot},
		"another word":                  {http.MethodGet, "/openapis", http.StatusTeapot},
		"a group that is not there":     {http.MethodGet, PathOf("dns.acme.example"), http.StatusTeapot},
		"a page that is not there":      {http.MethodGet, Prefix + "dns.acme.example", http.StatusTeapot},
		"the first group by its name":   {http.MethodGet, PathOf(firstGroup), http.StatusTeapot},
		"without the slash":             {http.MethodGet, "/openapi", http.StatusMovedPermanently},
		"a group without the slash":     {http.MethodGet, Prefix + otherGroup, http.StatusMovedPermanently},
		"with POST":                     {http.MethodPost, DocumentPath, http.StatusMethodNotAllowed},
		"with HEAD":                     {http.MethodHead, DocumentPath, http.StatusOK},
	} {
		r := serve(t, c.method, c.path, nil)
		if r.Code != c.want {
			t.Errorf("%s: status %d, want %d", name, r.Code, c.want)
		}
		if c.method == http.MethodHead && (r.Body.Len() > 0 || len(r.Header().Get("Content-Length")) != 6) {
			t.Errorf("%s: a body, or no length: %q", name, r.Header().Get("Content-Length"))
		}
		if c.want == http.StatusMovedPermanently && r.Header().Get("Location") != c.path+"/" {
			t.Errorf("%s: moved to %q", name, r.Header().Get("Location"))
		}
	}
}

func TestNoHookHasThePrefix(t *testing.T) {
	for _, h := range hooks(t) {
		if strings.HasPrefix(h.Path(""), bare) {
			t.Errorf("%s is below %s", h.Path(""), bare)
		}
	}
}

func hooks(t *testing.T) []*catalog.Hook {
	t.Helper()
	all, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	return all.Hooks()
}

func TestTheDocumentsHaveEveryHook(t *testing.T) {
	for _, h := range hooks(t) {
		text := map[string]string{
			firstGroup: openapi.Document, otherGroup: openapi.Infrastructure, hook.MachinesGroup: openapi.Machines,
		}[h.Group]
		var document struct {
			Paths map[string]json.RawMessage `json:"paths"`
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatal(err)
		}
		if _, ok := document.Paths[h.Path("")]; !ok {
			t.Errorf("the document of %s has no %s: run `make generate`", h.Group, h.Path(""))
		}
	}
}

// TestADocumentThatCannotBeMade serves one, which only a defect can cause.
func TestADocumentThatCannotBeMade(t *testing.T) {
	none := func() ([]byte, error) { return nil, errors.New("no descriptors") }
	h, err := New(http.NotFoundHandler(), Document{firstGroup, none})
	if err != nil {
		t.Fatal(err)
	}
	for _, coding := range []string{"", "gzip"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, DocumentPath, nil)
		r.Header.Set("Accept-Encoding", coding)
		h.ServeHTTP(w, r)
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "no descriptors") {
			t.Errorf("with coding %q: status %d, %s", coding, w.Code, w.Body)
		}
	}
}

// BenchmarkHook measures what the handler costs a call of a hook.
func BenchmarkHook(b *testing.B) {
	h, err := newHandler(func(http.ResponseWriter, *http.Request) {})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate", nil)
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
}

// sink is a response of which nothing is kept.
type sink http.Header

func (s sink) Header() http.Header         { return http.Header(s) }
func (s sink) Write(b []byte) (int, error) { return len(b), nil }
func (s sink) WriteHeader(int)             {}

// TestRequestsShareTheFiles checks that a request for a file, which needs no credentials and may take minutes to be
// read, allocates no copy of it.
func TestRequestsShareTheFiles(t *testing.T) {
	h, err := newHandler(func(http.ResponseWriter, *http.Request) {})
	if err != nil {
		t.Fatal(err)
	}
	const requests = 20
	for path := range h.files {
		for _, encoding := range []string{"identity", "gzip"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept-Encoding", encoding)
			h.ServeHTTP(sink{}, r) // makes what is shared
			t.Run(path+" "+encoding, func(t *testing.T) {
				alloctest.Bound{PerByte: 8 << 10}.Check(t, requests, func() {
					for range requests {
						h.ServeHTTP(sink{}, r)
					}
				})
			})
		}
	}
}
