// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi serves the OpenAPI document of the hooks, and a page to read it and to try the hooks.
//
// Everything is embedded in the binary: the page loads nothing from another host, which its Content-Security-Policy
// enforces. tools/openapi makes the document. A Handler is safe for concurrent use, and decompresses or compresses a
// file only when it is first requested.
package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/swaggest/swgui/v5/static"

	"github.com/hookgate/hookgate/gen/openapi"
)

// Paths of the document and its page.
const (
	// Prefix is the prefix of all paths. No path of a hook has it.
	Prefix = "/openapi/"
	bare   = "/openapi"
	// DocumentPath is the path of the document in JSON.
	DocumentPath = Prefix + "hooks.json"
)

// policy lets the page load from the gateway and nowhere else. Swagger UI sets styles on elements and has its icons as
// data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page
var page embed.FS

// file is the response of one path. Its content, plain and compressed, is made when it is first requested.
type file struct {
	contentType string
	plain, gzip func() ([]byte, error)
	etag        func() string
}

// Handler serves the paths that begin with Prefix and passes all others to the next handler.
type Handler struct {
	next  http.Handler
	files map[string]*file
}

// New returns a Handler that serves the document and the page, and lets next serve everything else.
func New(next http.Handler) (*Handler, error) {
	h := &Handler{next: next, files: map[string]*file{DocumentPath: newDocument()}}
	for name, contentType := range map[string]string{
		"index.html": "text/html; charset=utf-8",
		"page.js":    "text/javascript; charset=utf-8",
		"page.css":   "text/css; charset=utf-8",
	} {
		content, err := page.ReadFile("page/" + name)
		if err != nil {
			return nil, err
		}
		h.files[Prefix+name] = newFile(contentType, func() ([]byte, error) { return content, nil })
	}
	h.files[Prefix] = h.files[Prefix+"index.html"]
	for name, contentType := range map[string]string{
		"swagger-ui-bundle.js": "text/javascript; charset=utf-8", "swagger-ui.css": "text/css; charset=utf-8",
	} {
		if _, err := fs.Stat(static.FS, name+".gz"); err != nil {
			return nil, err
		}
		h.files[Prefix+name] = newCompressed(contentType, static.FS, name+".gz")
	}
	h.files[Prefix+"favicon-32x32.png"] = newFile("image/png",
		func() ([]byte, error) { return static.FS.ReadFile("favicon-32x32.png") })
	return h, nil
}

// ServeHTTP serves a file, or calls the next handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, bare) {
		h.next.ServeHTTP(w, r)
		return
	}
	if r.URL.Path == bare {
		http.Redirect(w, r, Prefix, http.StatusMovedPermanently)
		return
	}
	f, ok := h.files[r.URL.Path]
	if !ok {
		h.next.ServeHTTP(w, r) // it answers unknown paths
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method "+r.Method+" is not allowed: want GET", http.StatusMethodNotAllowed)
		return
	}
	f.serve(w, r)
}

func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Another version of the gateway has other content at the same path: browsers revalidate each time.
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	header.Set("ETag", f.etag())
	if matches(r.Header.Values("If-None-Match"), f.etag()) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := f.plain
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		content = f.gzip
	}
	b, err := content()
	if err != nil { // the content is embedded, so the build is defective
		header.Del("Content-Encoding")
		http.Error(w, "read "+r.URL.Path+": "+err.Error(), http.StatusInternalServerError)
		return
	}
	header.Set("Content-Type", f.contentType)
	header.Set("Content-Length", strconv.Itoa(len(b)))
	if r.Method == http.MethodHead {
		return
	}
	_, _ = w.Write(b) // the server notices a closed connection
}

// newDocument returns the file of the document.
func newDocument() *file {
	return newFile("application/json", func() ([]byte, error) { return []byte(openapi.Document), nil })
}

// newFile returns a file whose content is embedded uncompressed.
func newFile(contentType string, plain func() ([]byte, error)) *file {
	return &file{
		contentType: contentType, plain: plain,
		gzip: sync.OnceValues(func() ([]byte, error) {
			content, err := plain()
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			_, err = w.Write(content)
			if err == nil {
				err = w.Close()
			}
			return b.Bytes(), err
		}),
		etag: etagOf(plain),
	}
}

// newCompressed returns a file whose content is embedded compressed, because nearly every browser accepts that.
func newCompressed(contentType string, from embed.FS, name string) *file {
	compressed := func() ([]byte, error) { return from.ReadFile(name) }
	return &file{
		contentType: contentType, gzip: compressed,
		plain: func() ([]byte, error) {
			content, err := compressed()
			if err != nil {
				return nil, err
			}
			r, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		},
		etag: etagOf(compressed),
	}
}

// etagOf returns the entity tag of content. It is weak, because the plain and the compressed form share it.
func etagOf(content func() ([]byte, error)) func() string {
	return sync.OnceValue(func() string {
		b, err := content()
		if err != nil {
			return ""
		}
		return fmt.Sprintf(`W/"%x"`, sha256.Sum256(b))
	})
}

// matches reports whether the values of an If-None-Match header contain the tag.
func matches(values []string, etag string) bool {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			if tag = strings.TrimSpace(tag); tag == "*" || tag == etag || "W/"+tag == etag {
				return true
			}
		}
	}
	return false
}

// acceptsGzip reports whether the values of an Accept-Encoding header contain gzip with a weight above 0.
func acceptsGzip(values []string) bool {
	for _, value := range values {
		for coding := range strings.SplitSeq(value, ",") {
			name, weight, _ := strings.Cut(coding, ";")
			if strings.TrimSpace(name) != "gzip" {
				continue
			}
			q, err := strconv.ParseFloat(strings.TrimPrefix(strings.ReplaceAll(weight, " ", ""), "q="), 64)
			return weight == "" || err == nil && q > 0
		}
	}
	return false
}
