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

// NewREST returns the front over the services of a contract.
func NewREST(k Contract, c *codec.Codec, o *Observer) (*REST, error) {
	f := &REST{catalog: k.Catalog(), codec: c, observer: o, bodies: body.Reader{Max: MaxBodyBytes, Pool: &body.Pool{}}}
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
	// The mux outlives any call, and has no connection to close.
	if err := k.RegisterREST(context.Background(), f.mux); err != nil {
		return nil, err
	}
	return f, nil
}

// ServeHTTP answers one call. Whatever is wrong with it, the body is an answer of the hook.
func (f *REST) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, rest, ok := f.catalog.ByPath(r.URL.Path)
	asked := ""
	if h == nil {
		_, asked = f.versionInPath(r.URL.Path)
	}
	ctx, in := f.observer.begin(r.Context(), "REST", asked, h, propagation.HeaderCarrier(r.Header), r.Header.Get(CallIDHeader))
	w.Header().Set(CallIDHeader, in.id)
	defer func() {
		if p := recover(); p != nil {
			f.writeError(w, h, in, recovered(p))
		}
		in.end()
	}()
	if !ok || !takes(h, rest) {
		f.writeError(w, nil, in, f.unknownPath(r.URL.Path, h))
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

// countingWriter counts what the mux answers, and adds the warnings of the call to its header.
type countingWriter struct {
	http.ResponseWriter
	in *inbound
}

func (w *countingWriter) WriteHeader(code int) {
	w.in.warn(w.Header())
	w.ResponseWriter.WriteHeader(code)
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.in.sent == 0 {
		w.in.warn(w.Header())
	}
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

// versionInPath returns the version of the hooks that a path is about, nil if there is none, and the segment that names the hook.
func (f *REST) versionInPath(path string) (*catalog.Version, string) {
	segments := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 4)
	if len(segments) < 3 {
		return nil, ""
	}
	v, ok := f.catalog.Version(segments[0], segments[1])
	if !ok {
		return nil, ""
	}
	return v, segments[2]
}

// takes tells whether the path of a hook may go on like that: with a handler's segment, and only where there may be one.
func takes(h *catalog.Hook, rest string) bool {
	return rest == "" || !h.Singleton() && len(rest) > 1 && !strings.Contains(rest[1:], "/")
}

// unknownPath says what a path should have been.
func (f *REST) unknownPath(path string, h *catalog.Hook) error {
	if h != nil {
		return hook.Errorf(hook.UnknownHook, "no hook at path %q: want %s", path, h.Path("")+handlerSegment(h))
	}
	v, name := f.versionInPath(path)
	switch {
	case v != nil && v.Removed():
		return hook.Errorf(hook.UnknownHook, "no hooks of %s any more, which %s of the gateway has removed: call %s", v.APIVersion(), v.Lifetime.Removed, v.Instead())
	case name != "":
		return hook.Errorf(hook.UnknownHook, "no hook %q: see \"hookgate call --help\" for their names", name)
	}
	return hook.Errorf(hook.UnknownHook, "no hook at path %q: want %s", path, f.wantPath(path))
}

// wantPath describes the paths of the group that a path is about, or of any if it is about none.
func (f *REST) wantPath(path string) string {
	group, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	apiVersion, others := f.apiVersion(), ""
	for _, v := range f.catalog.Versions() {
		switch {
		case v.Group != group || v.Removed():
		case apiVersion == "" || !strings.HasPrefix(apiVersion, group+"/"):
			apiVersion = v.APIVersion()
		case apiVersion != v.APIVersion():
			others += ", or " + v.Name
		}
	}
	return "/" + apiVersion + "/<hook>[/<handler>]" + others
}

// apiVersion returns the newest version of the hooks, for answers that are about none.
func (f *REST) apiVersion() string {
	for _, h := range f.catalog.Discoveries() {
		return h.APIVersion()
	}
	return ""
}

func handlerSegment(h *catalog.Hook) string {
	if h.Singleton() {
		return ""
	}
	return "[/<handler>]"
}
