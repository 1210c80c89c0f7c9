// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"go.opentelemetry.io/otel/propagation"

	"github.com/hookgate/hookgate/body"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

const (
	// CallIDHeader carries the id of a call: in every answer, and in the log line of a call that failed. A caller may
	// choose it.
	CallIDHeader = "Hookgate-Call-Id"
	// ErrorKindHeader carries the kind of the error in answers other than 200.
	ErrorKindHeader = "Hookgate-Error-Kind"
)

// REST is the HTTPS JSON front: POST /<group>/<version>/<hook>[/<handler>], as Cluster API calls extensions.
type REST struct {
	catalog  *catalog.Catalog
	codec    *codec.Codec
	mux      *runtime.ServeMux
	observer *Observer
	bodies   body.Reader
}

// NewREST returns the front over services.
func NewREST(s *Services, c *codec.Codec, o *Observer) (*REST, error) {
	f := &REST{catalog: s.catalog, codec: c, observer: o, bodies: body.Reader{Max: MaxBodyBytes, Pool: &body.Pool{}}}
	f.mux = runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, codec.NewMarshaler(c)),
		runtime.WithErrorHandler(f.muxError),
		runtime.WithRoutingErrorHandler(f.routingError),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithWriteContentLength(),
		// Nothing of the request's headers concerns the services; trace context is read by the front itself.
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
	)
	ctx := context.Background() // the mux outlives any call, and has no connection to close
	for _, register := range []func() error{
		func() error { return hooksv1alpha1.RegisterTopologyMutationHooksServiceHandlerServer(ctx, f.mux, s) },
		func() error { return hooksv1alpha1.RegisterLifecycleHooksServiceHandlerServer(ctx, f.mux, s) },
		func() error { return hooksv1alpha1.RegisterInPlaceUpdateHooksServiceHandlerServer(ctx, f.mux, s) },
		func() error { return hooksv1alpha1.RegisterUpgradePlanHooksServiceHandlerServer(ctx, f.mux, s) },
		func() error { return hooksv1alpha1.RegisterDiscoveryServiceHandlerServer(ctx, f.mux, s) },
	} {
		if err := register(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// ServeHTTP answers one call. Whatever is wrong with it, the body is an answer of the hook.
func (f *REST) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := hookInPath(r.URL.Path)
	h, known := f.catalog.ByName(name)
	ctx, in := f.observer.begin(r.Context(), "REST", name, h, propagation.HeaderCarrier(r.Header), r.Header.Get(CallIDHeader))
	w.Header().Set(CallIDHeader, in.id)
	defer func() {
		if p := recover(); p != nil {
			f.writeError(w, h, in, recovered(p))
		}
		in.end()
	}()
	if !known || !isHookPath(r.URL.Path, h) {
		f.writeError(w, nil, in, unknownPath(r.URL.Path, h))
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		in.fail(hook.Errorf(hook.InvalidRequest, "method %s is not allowed: hooks are called with POST", r.Method))
		f.writeStatus(w, h, http.StatusMethodNotAllowed, in)
		return
	}
	ctx, cancel, err := withCallerTimeout(ctx, r)
	if err != nil {
		f.writeError(w, h, in, err)
		return
	}
	defer cancel()
	b, err := f.readBody(w, r)
	if err != nil {
		f.writeError(w, h, in, err)
		return
	}
	// The message aliases the body, and so do the requests to extensions. When the mux returns, all of these have ended and
	// the answer has been written.
	defer b.Release()
	in.received = int64(len(b.Bytes))
	r = r.WithContext(ctx)
	in.body = newBuffered(b.Bytes)
	r.Body = in.body
	f.mux.ServeHTTP(&countingWriter{ResponseWriter: w, in: in}, r)
}

// countingWriter counts what the mux answers.
type countingWriter struct {
	http.ResponseWriter
	in *inbound
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.in.sent += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// withCallerTimeout bounds ctx by the query parameter timeout, as Cluster API sends it: a duration, such as 10s.
func withCallerTimeout(ctx context.Context, r *http.Request) (context.Context, context.CancelFunc, error) {
	if r.URL.RawQuery == "" {
		return ctx, func() {}, nil
	}
	value := r.URL.Query().Get("timeout")
	if value == "" {
		return ctx, func() {}, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil || timeout <= 0 {
		return nil, nil, hook.Errorf(hook.InvalidRequest, "query parameter timeout: want a duration such as 10s, got %q", value)
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	return bounded, cancel, nil
}

const pathPrefix = "/" + hook.Group + "/" + hook.Version + "/"

// hookInPath returns the segment of the path that names the hook, or "".
func hookInPath(path string) string {
	rest, ok := strings.CutPrefix(path, pathPrefix)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// isHookPath tells whether the path is one of hook h: in lower case, and with a handler segment only where there may be one.
func isHookPath(path string, h *catalog.Hook) bool {
	name, handler, found := strings.Cut(path[len(pathPrefix):], "/")
	if name != strings.ToLower(h.Hook) {
		return false
	}
	return !found || !h.Singleton() && handler != "" && !strings.Contains(handler, "/")
}

// unknownPath says what a path should have been.
func unknownPath(path string, h *catalog.Hook) error {
	if h != nil {
		return hook.Errorf(hook.UnknownHook, "no hook at path %q: want %s", path, h.Path("")+handlerSegment(h))
	}
	if name := hookInPath(path); name != "" {
		return hook.Errorf(hook.UnknownHook, "no hook %q: see \"hookgate call --help\" for their names", name)
	}
	return hook.Errorf(hook.UnknownHook, "no hook at path %q: want %s<hook>[/<handler>]", path, pathPrefix)
}

func handlerSegment(h *catalog.Hook) string {
	if h.Singleton() {
		return ""
	}
	return "[/<handler>]"
}
