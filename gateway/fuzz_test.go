// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/network/via"
)

// FuzzREST sends requests with any path, query, way and encoding to the REST front. Whatever is wrong with one, the
// answer is JSON with a status and a message.
func FuzzREST(f *testing.F) {
	for _, path := range []string{
		createPath, createPath + "/v.acme", "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", strings.ToUpper(createPath),
		"/hooks.runtime.cluster.x-k8s.io/v9/x", "/", "//", "/a/b/c/d", createPath + "/%2e%2e/\x00",
	} {
		f.Add(path, "timeout=10s", "a/h.x, b/i.y", "gzip", []byte(createBody))
		f.Add(path, "", "", "", []byte(createBody))
	}
	f.Add(createPath, "timeout=1ns&timeout=", "a", "identity", []byte(`{"cluster":{}}`))
	f.Add(createPath, "timeout=-1s;%zz", ",", "br", []byte(`{"settings":{"a":"b"},"new":[]}`))
	front := newFixture(f, nil)
	front.registry.SetReady()
	// The front reads bodies of gzip, which expand to a thousand times their size.
	memory := alloctest.Bound{Base: 2 << 20, PerByte: 8 << 10}
	f.Fuzz(func(t *testing.T, path, query, way, encoding string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(string(body)))
		r.URL = &url.URL{Path: path, RawQuery: query}
		r.Header.Set("Content-Encoding", encoding)
		r.Header.Set(via.Header, way)
		w := httptest.NewRecorder()
		front.log.Reset()
		memory.Check(t, len(path)+len(query)+len(way)+len(body), func() { front.front.ServeHTTP(w, r) })
		var answer struct{ Status, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Status == "" {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		failed := w.Header().Get(ErrorKindHeader)
		if (w.Code == http.StatusOK) != (failed == "") || failed != "" && answer.Message == "" || failed == hook.Internal.String() {
			t.Errorf("%d, kind %q: %s", w.Code, failed, w.Body)
		}
	})
}
