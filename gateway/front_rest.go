// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"go.opentelemetry.io/otel/propagation"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/body"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

// REST is the HTTPS JSON front: POST /<group>/<version>/<hook>[/<handler>], as Cluster API calls extensions. Behind
// ExplainPrefix, the same paths explain calls.
type REST struct {
	config         Config
	dispatcher     *Dispatcher
	mux            *runtime.ServeMux
	bodies         body.Reader
	lingeringClose servers.LingeringClose
}

// NewREST returns the front over the services, which d answers. d needs an Observer.
func NewREST(d *Dispatcher, services *Services) (*REST, error) {
	f := &REST{config: d.config, dispatcher: d, bodies: body.Reader{Max: BodyBytes, Pool: &body.Pool{}}}
	f.mux = runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, marshaler{d.config.Codec}),
		runtime.WithForwardResponseRewriter(rewriteAnswer),
		runtime.WithErrorHandler(f.muxError),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithWriteContentLength(),
		// The services read no headers, and the front itself reads the trace context.
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
	)
	if err := services.RegisterREST(f.mux); err != nil {
		return nil, err
	}
	return f, nil
}

// ServeHTTP answers one call. Whatever is wrong with the call, the body is a response of the hook.
func (f *REST) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 2 {
		growStack(0)
	}
	path, protocol := r.URL.Path, "REST"
	if strings.HasPrefix(path, ExplainPrefix+"/") {
		path, protocol = path[len(ExplainPrefix):], protocolExplain
	}
	h, asked, handler, routeErr := f.route(path)
	carrier := propagation.HeaderCarrier(r.Header)
	ctx, in := begin(r.Context(), f.config.Observer, protocol, asked, h, carrier, r.Header.Get(CallIDHeader))
	in.Handler = handler
	w := &restWriter{ResponseWriter: rw, in: in, answer: servers.NewAnswerWriter(rw, r)}
	w.Header().Set(CallIDHeader, in.ID)
	f.lingeringClose.Prepare(rw, r)
	defer func() {
		if p := recover(); p != nil {
			f.writeError(w, in, outcome.Recovered(p))
		}
		w.answer.Flush()
		in.end()
		f.lingeringClose.Discard(rw, r, in.stream)
	}()
	if routeErr != nil {
		in.Hook = nil // it was at most a near miss, under whose name the call is counted
	}
	if err := in.admit(f.config.Gate, restCredentials(r), in.Hook); err != nil {
		f.writeError(w, in, err)
		return
	}
	if routeErr != nil {
		f.writeError(w, in, routeErr)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		in.fail(hook.Errorf(hook.InvalidRequest, "method %s is not allowed: hooks are called with POST", r.Method))
		f.writeStatus(w, in, http.StatusMethodNotAllowed)
		return
	}
	if err := checkOrigin(r); err != nil {
		f.writeError(w, in, err)
		return
	}
	if err := f.serve(ctx, w, r, in); err != nil {
		f.writeError(w, in, err)
	}
}

// serve reads the request and lets the mux answer it. An error means that nothing has been written.
func (f *REST) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, in *call) error {
	ctx, cancel, err := withCallerTimeout(ctx, r)
	if err != nil {
		return err
	}
	defer cancel()
	in.stream = &servers.SentBody{Reader: r.Body}
	if err := in.reserve(ctx, f.config.Memory, remoteHost(r.RemoteAddr)); err != nil {
		return err
	}
	reserve := in.memory.Within(ctx)
	in.work = in.memory.Work(ctx)
	b, err := f.readBody(w, r, in.stream, body.Guard{Reserve: reserve, Work: &in.work})
	if err != nil {
		return err
	}
	// The message aliases the body, and so do the requests to extensions. When the mux returns, all of these have ended
	// and the answer has been written.
	defer b.Release()
	in.Received = int64(len(b.Bytes))
	in.isJSON, in.body, in.guard = true, b.Bytes, codec.Guard{Reserve: reserve}
	in.via = via.Of(r.Header.Values(via.Header))
	r = r.WithContext(ctx)
	r.Body = http.NoBody // it was read
	if in.Protocol == protocolExplain {
		return f.explain(ctx, w, r, in)
	}
	// The generated code would turn these into metadata of gRPC, which no service reads.
	if r.Host, r.RemoteAddr = "", ""; r.Header["Grpc-Timeout"] == nil {
		r.Header = nil
	}
	f.mux.ServeHTTP(w, r)
	return nil
}

// withCallerTimeout bounds ctx by the query parameter timeout, as Cluster API sends it: a duration, such as 10s.
func withCallerTimeout(ctx context.Context, r *http.Request) (context.Context, context.CancelFunc, error) {
	if r.URL.RawQuery == "" {
		return ctx, func() {}, nil
	}
	value, only := strings.CutPrefix(r.URL.RawQuery, "timeout=")
	if !only || strings.ContainsAny(value, "&%+;") {
		value = r.URL.Query().Get("timeout")
	}
	if value == "" {
		return ctx, func() {}, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil || timeout <= 0 {
		return nil, nil, hook.Errorf(hook.InvalidRequest,
			"query parameter timeout: want a duration such as 10s, got %q", value)
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	return bounded, cancel, nil
}

// restWriter counts the written bytes, and adds the warnings of the call to its header.
type restWriter struct {
	http.ResponseWriter
	in     *call
	answer servers.AnswerWriter
}

// WriteHeader writes the header with the warnings.
func (w *restWriter) WriteHeader(code int) {
	w.addWarnings()
	w.ResponseWriter.WriteHeader(code)
}

// Write counts and writes p.
func (w *restWriter) Write(p []byte) (int, error) {
	if w.in.Sent == 0 {
		w.addWarnings()
	}
	n, err := w.answer.Write(p)
	w.in.Sent += int64(n)
	return n, err
}

func (w *restWriter) addWarnings() {
	if w.in.unhandled {
		w.Header().Set(HandlersHeader, "0")
	}
	if values := w.in.warnings.Values(); values != nil {
		w.Header()[WarningHeader] = values
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (w *restWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// BodyBytes is the size of the largest request or answer on every transport, after decompression.
const BodyBytes = limits.BodyBytes

// readBody reads and decompresses the request's body. Errors are of kind TooLarge, Overloaded, InvalidRequest and
// Canceled.
func (f *REST) readBody(
	w http.ResponseWriter, r *http.Request, sent io.Reader, g body.Guard,
) (*body.Body, error) {
	// Several headers are one list.
	encoding := strings.Join(r.Header.Values("Content-Encoding"), ", ")
	b, err := f.bodies.Read(sent, r.ContentLength, encoding, g)
	var refused *hook.Error
	switch {
	case err == nil:
		return b, nil
	case errors.As(err, &refused):
		w.Header().Set("Connection", "close")
		err = refused
	case errors.Is(err, context.DeadlineExceeded): // while waiting for a turn
		w.Header().Set("Connection", "close")
		err = bounds.Refused(err)
	case errors.Is(err, body.ErrTooLarge):
		// The caller may have more to send than is read after the answer. In HTTP/2, that concerns the stream alone.
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		err = hook.Errorf(hook.TooLarge, "request body is larger than 20 MiB")
	case errors.Is(err, body.ErrEncoding):
		err = hook.Errorf(hook.InvalidRequest, "%s: send gzip, or none", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = hook.Errorf(hook.InvalidRequest, "request body was not received within %s", limits.ReceiveTimeout).
			WithCause(err)
	case r.Context().Err() != nil:
		err = hook.Errorf(hook.Canceled, "the caller left while sending the request").WithCause(err)
	case errors.Is(err, body.ErrGzip):
		err = hook.Errorf(hook.InvalidRequest, "request body is not valid gzip").WithCause(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = hook.Errorf(hook.InvalidRequest, "request body ends early").WithCause(err)
	default:
		err = hook.Errorf(hook.InvalidRequest, "request body cannot be read").WithCause(err)
	}
	return b, err
}

// crossOrigin recognizes requests that a browser makes for a page of another site, with the client certificate of its
// user. Only the page of the gateway itself may call hooks.
var crossOrigin http.CrossOriginProtection

// checkOrigin returns an error for a request that a page of another site may have made. Programs send neither of the
// headers that tell. The types of content are a second line: these a browser sends without asking the gateway first.
// Cluster API sends no type at all.
func checkOrigin(r *http.Request) error {
	if crossOrigin.Check(r) != nil { // its text depends on the browser
		return hook.Errorf(hook.Forbidden,
			"pages of other sites may not call hooks: call from a program, or from a page of the gateway")
	}
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); media {
	case "application/x-www-form-urlencoded", "multipart/form-data", "text/plain":
		return hook.Errorf(hook.InvalidRequest,
			"Content-Type %s is not allowed, because pages of other sites can send it: send application/json", media)
	}
	return nil
}

// ExplainPrefix is the prefix of the paths that explain calls: with it, the path of a hook has an Explanation instead
// of an answer. The query call=true calls the handlers, too. A gateway that does not know these paths answers 404, and
// calls nothing.
const ExplainPrefix = "/explain"

// protocolExplain is the protocol of requests for explanations in metrics: they are no calls.
const protocolExplain = "explain"

// explain answers a request for an explanation. An error means that nothing has been written.
func (f *REST) explain(ctx context.Context, w http.ResponseWriter, r *http.Request, in *call) (err error) {
	calls := false
	if asked := r.URL.Query().Get("call"); asked != "" {
		if calls, err = strconv.ParseBool(asked); err != nil {
			return hook.Errorf(hook.InvalidRequest, "query parameter call: want true or false, got %q",
				text.Cut(asked, limits.QuotedBytes))
		}
	}
	req := catalog.WithHandler(in.Hook.Request.New().Interface(), in.Handler)
	defer func() {
		if err != nil {
			in.About(req) // before its body is released
		}
	}()
	request, err := in.request(f.config.Codec, req, func(string) reading { return readWhole })
	if err != nil {
		return err
	}
	if err := in.via.Check(f.config.Gateway); err != nil {
		return err
	}
	explain := f.dispatcher.Explain
	if calls {
		explain = f.dispatcher.ExplainCall
	}
	x, err := explain(ctx, request)
	if err != nil {
		return err
	}
	body, err := json.Marshal(x)
	if err != nil {
		return outcome.Internal(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the server sees a caller that left
	return nil
}
