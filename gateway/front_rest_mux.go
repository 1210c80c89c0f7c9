// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/hookgate/hookgate/catalog"
)

// restMux is the mux in which the services register, with an index by hook: the mux itself compares a path with the
// patterns of all services, one after the other, which takes a tenth of the CPU of a small call.
type restMux struct {
	mux      *runtime.ServeMux
	bindings map[*catalog.Hook]bindings
}

// bindings are the methods that the mux has for a hook.
type bindings struct {
	path string              // of the hook
	all  runtime.HandlerFunc // of this path; nil if no service has one
	one  runtime.HandlerFunc // of this path and the name of a handler; nil if no service has one
}

// probe asks the mux for the method that a path leads to, and never writes. It is the writer of such a request.
type probe struct {
	http.ResponseWriter
	found runtime.HandlerFunc
}

// newRESTMux returns a mux with the services that register adds. It calls notFound for a path without a method.
func newRESTMux(
	hooks *catalog.Catalog, register func(context.Context, *runtime.ServeMux) error,
	notFound runtime.RoutingErrorHandlerFunc, options ...runtime.ServeMuxOption,
) (*restMux, error) {
	m := &restMux{bindings: map[*catalog.Hook]bindings{}}
	m.mux = runtime.NewServeMux(append(options,
		runtime.WithMiddlewares(func(method runtime.HandlerFunc) runtime.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
				if p, ok := w.(*probe); ok {
					p.found = method
					return
				}
				method(w, r, params)
			}
		}),
		runtime.WithRoutingErrorHandler(func(
			ctx context.Context, mux *runtime.ServeMux, m runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int,
		) {
			if _, ok := w.(*probe); !ok {
				notFound(ctx, mux, m, w, r, code)
			}
		}),
	)...)
	// The mux outlives any call, and has no connection to close.
	if err := register(context.Background(), m.mux); err != nil {
		return nil, err
	}
	for _, h := range hooks.Hooks() {
		m.bindings[h] = bindings{path: h.Path(""), all: m.method(h.Path("")), one: m.method(h.Path("handler"))}
	}
	return m, nil
}

// method returns the method that the mux has for a path, or nil.
func (m *restMux) method(path string) runtime.HandlerFunc {
	p := &probe{}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, path, http.NoBody)
	if err != nil {
		return nil
	}
	m.mux.ServeHTTP(p, r)
	return p.found
}

// serve answers a request to a path of h, as the mux does. It removes from r what the generated code would turn into
// metadata of gRPC, which no service reads.
func (m *restMux) serve(w http.ResponseWriter, r *http.Request, h *catalog.Hook) {
	if r.Host, r.RemoteAddr = "", ""; r.Header["Grpc-Timeout"] == nil {
		r.Header = nil
	}
	b := m.bindings[h]
	switch handler, ok := strings.CutPrefix(r.URL.Path, b.path); {
	case ok && handler == "" && b.all != nil:
		b.all(w, r, nil)
	case ok && handler != "" && b.one != nil:
		b.one(w, r, map[string]string{"handler": handler[1:]})
	default:
		m.mux.ServeHTTP(w, r)
	}
}
