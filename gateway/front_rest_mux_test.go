// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/hookgate/hookgate/catalog"
)

// The index leads each path to the method that the mux has for it, and a path without one to notFound. None of it
// calls a method before there is a request.
func TestRESTMuxFindsWhatTheMuxHas(t *testing.T) {
	hooks := catalog.New()
	missing, _ := hooks.ByName("AfterClusterUpgrade")
	var called int
	answer := func(name string) runtime.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request, params map[string]string) {
			called++
			_, _ = fmt.Fprintf(w, "%s %v", name, params)
		}
	}
	m, err := newRESTMux(hooks, func(mux *runtime.ServeMux) error {
		for _, h := range hooks.Hooks() {
			if h == missing {
				continue
			}
			if err := mux.HandlePath(http.MethodPost, h.Path(""), answer(h.Hook)); err != nil {
				return err
			}
			if !h.TakesHandler() {
				continue
			}
			if err := mux.HandlePath(http.MethodPost, h.Path("")+"/{handler}", answer("one "+h.Hook)); err != nil {
				return err
			}
		}
		return nil
	}, func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, code int) {
		w.WriteHeader(code)
	})
	if err != nil {
		t.Fatal(err)
	}
	if called != 0 {
		t.Errorf("%d methods were called to find them", called)
	}
	serve := func(h *catalog.Hook, path string) string {
		w := httptest.NewRecorder()
		m.serve(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody), h)
		return fmt.Sprint(w.Code, " ", w.Body)
	}
	for _, h := range hooks.Hooks() {
		want := map[string]string{h.Path(""): "200 " + h.Hook + " map[]"}
		if h.TakesHandler() {
			want[h.Path("v.acme")] = "200 one " + h.Hook + " map[handler:v.acme]"
			want[h.Path("v%2Eacme:x")] = "200 one " + h.Hook + " map[handler:v.acme:x]"
		}
		for path, want := range want {
			if h == missing {
				want = "404 "
			}
			if got := serve(h, path); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
	if called == 0 {
		t.Error("no method was called")
	}
}
