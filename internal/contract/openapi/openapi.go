// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi serves the OpenAPI documents of the hooks, one for each group, and a page for each to read it and to
// try the hooks.
//
// Everything comes from the binary: the pages load nothing from another host, which their Content-Security-Policy
// enforces. tools/openapi and package document make the documents. A Handler is safe for concurrent use, and
// decompresses or compresses a file only when it is first requested. All requests share the result, because the paths
// need no credentials: a client that asks for many files and reads none of them makes the gateway hold nothing more.
package openapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/swaggest/swgui/v5/static"
)

// Paths of the documents and their pages.
const (
	// Prefix is the prefix of all paths. No path of a hook has it.
	Prefix = "/openapi/"
	bare   = "/openapi"
	// DocumentPath is the path of the document of Cluster API's hooks in JSON.
	DocumentPath = Prefix + documentName
	documentName = "hooks.json"
)

// PathOf returns the path of the document of another group in JSON.
func PathOf(group string) string { return Prefix + group + "/" + documentName }

// policy lets the page load from the gateway and nowhere else. Swagger UI sets styles on elements and has its icons as
// data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page
var page embed.FS

// Document is the OpenAPI document of a group of hooks.
type Document struct {
	// Group is the name of the group: a DNS-1123 subdomain, so that it can be a segment of a path.
	Group string
	// JSON returns the document. It is called once, when the document is first requested.
	JSON func() ([]byte, error)
}

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
	pages map[string]string // by their paths without the slash at the end
}

// New returns a Handler that serves the documents and their pages, and lets next serve everything else. The first
// document is that of Cluster API's hooks.
func New(next http.Handler, first Document, more ...Document) (*Handler, error) {
	h := &Handler{next: next, files: map[string]*file{}, pages: map[string]string{}}
	for name, contentType := range map[string]string{
		"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8",
		"lifecycle.svg": "image/svg+xml",
	} {
		content, err := page.ReadFile("page/" + name)
		if err != nil {
			return nil, err
		}
		h.files[Prefix+name] = newFile(contentType, func() ([]byte, error) { return content, nil })
	}
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
	if err := h.addDocuments(append([]Document{first}, more...)); err != nil {
		return nil, err
	}
	return h, nil
}

// addDocuments adds each document and its page, in a folder of the group; that of the first one is Prefix itself.
func (h *Handler) addDocuments(documents []Document) error {
	pages, err := template.ParseFS(page, "page/index.html")
	if err != nil {
		return err
	}
	type link struct {
		Group, Folder string
		Current       bool
	}
	for i, d := range documents {
		links, base, folder := make([]link, len(documents)), "./", Prefix
		for j, other := range documents {
			links[j] = link{other.Group, other.Group + "/", i == j}
		}
		links[0].Folder = ""
		if i > 0 {
			base, folder = "../", Prefix+links[i].Folder
		}
		var text bytes.Buffer
		err := pages.Execute(&text, map[string]any{"Base": base, "Group": d.Group, "Links": links, "First": i == 0})
		if err != nil {
			return err
		}
		h.files[folder+documentName] = newFile("application/json", d.JSON)
		h.files[folder] = newFile("text/html; charset=utf-8", func() ([]byte, error) { return text.Bytes(), nil })
		h.files[folder+"index.html"] = h.files[folder]
		h.pages[strings.TrimSuffix(folder, "/")] = folder
	}
	return nil
}

// ServeHTTP serves a file, or calls the next handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, bare) {
		h.next.ServeHTTP(w, r)
		return
	}
	f, ok := h.files[r.URL.Path]
	if !ok {
		if page, ok := h.pages[r.URL.Path]; ok {
			http.Redirect(w, r, page, http.StatusMovedPermanently)
			return
		}
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
	if err != nil { // the content is part of the binary, so the build is defective
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

// newFile returns a file whose content is there uncompressed.
func newFile(contentType string, plain func() ([]byte, error)) *file {
	plain = sync.OnceValues(plain)
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
	compressed := sync.OnceValues(func() ([]byte, error) { return from.ReadFile(name) })
	return &file{
		contentType: contentType, gzip: compressed,
		plain: sync.OnceValues(func() ([]byte, error) {
			content, err := compressed()
			if err != nil {
				return nil, err
			}
			r, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				return nil, err
			}
			return io.ReadAll(r)
		}),
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
