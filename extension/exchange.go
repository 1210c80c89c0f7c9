// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// timeoutStep is what the timeout that an extension is told is rounded up to. It takes out the moment that has passed
// since the deadline was set.
const timeoutStep = 100 * time.Millisecond

// The values of the headers that are the same in every request. net/http only reads them.
var (
	jsonHeader      = []string{"application/json"}
	identityHeader  = []string{"identity"}
	userAgentHeader = []string{"hookgate"}
)

// exchange is one request in JSON over HTTP and its answer, whatever number of attempts it takes.
type exchange struct {
	errand
	handler string // empty for discovery
	body    []byte // of the request, if it need not be encoded

	route *route
	query string

	outgoing       *outgoing // of the attempt that was answered
	attempt        *attempt
	sent, received int64
	absent         bool // the server has nothing at the path
}

// exchange sends in and returns the answer.
func (r *REST) exchange(ctx context.Context, cc registry.ClientConfig, x *exchange, in proto.Message) (proto.Message, *hook.Error) {
	var err error
	if x.route, err = r.routes.get(cc); err != nil {
		return nil, x.fail(hook.Unreachable, err.Error(), err)
	}
	body, failed := r.encode(x, in)
	if failed != nil {
		return nil, failed
	}

	ctx, cancel := x.bound(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return nil, x.ended(ctx, ctx.Err())
	}
	x.budget(ctx)

	resp, p, err := r.send(ctx, x, body)
	if err != nil {
		return nil, x.unanswered(ctx, err)
	}
	defer p.release() // after the body was closed: then the connection is idle, or closed
	// After the whole answer: one may begin while the request is still being sent.
	defer func() { x.sent = x.outgoing.detach(x.attempt.wrote.Load()) }()
	defer func() { _ = resp.Body.Close() }()
	return r.answer(ctx, x, resp)
}

func (r *REST) encode(x *exchange, in proto.Message) (codec.Body, *hook.Error) {
	if x.body != nil {
		return codec.BodyOf(x.body), nil // it had to keep to the same limit when it came
	}
	body, err := r.config.Codec.Encode(in)
	if err != nil {
		var wrong *codec.Error
		if errors.As(err, &wrong) {
			return body, x.fail(hook.InvalidRequest, "request: "+wrong.Error(), err)
		}
		return body, x.fail(hook.Internal, "request: "+err.Error(), err)
	}
	if body.Size() > r.config.MaxBytes {
		return body, x.tooLarge(body.Size(), r.config.MaxBytes)
	}
	return body, nil
}

// budget works out what the extension is told about the time that it has: the handler's timeout, or what is left of the
// caller's deadline if that is less.
func (x *exchange) budget(ctx context.Context) {
	deadline, _ := ctx.Deadline()
	told := min(x.timeout, (time.Until(deadline) + timeoutStep - 1).Truncate(timeoutStep))
	x.query = "timeout=" + max(told, timeoutStep).String()
}

// send sends the body until there is an answer, or no use in trying. The pool must be released after the answer's body
// was closed.
func (r *REST) send(ctx context.Context, x *exchange, body codec.Body) (*http.Response, *pool, error) {
	again := true
	for {
		p := x.route.target.acquire(r.now())
		a := &attempt{}
		resp, err := r.roundTrip(ctx, x, body, p, a)
		if err == nil {
			x.route.target.answered(p)
			return resp, p, nil
		}
		p.release()
		switch {
		case ctx.Err() != nil:
			return nil, nil, err
		case isNoCommonProtocol(err) && x.route.target.refusedHTTP1(p):
		case again && a.unsent(err) && isPassing(err):
			again = false
		case a.unnegotiated.Load() && isHungUp(err) && !x.route.target.speaksHTTP1.Load():
			// Perhaps a server that speaks HTTP/2 only and does not tell; perhaps it has seen the request.
			x.route.target.refusedHTTP1(p)
			return nil, nil, err
		default:
			return nil, nil, err
		}
	}
}

// roundTrip makes one attempt. It follows no redirect, and it adds neither cookies nor credentials.
func (r *REST) roundTrip(ctx context.Context, x *exchange, body codec.Body, p *pool, a *attempt) (*http.Response, error) {
	header := make(http.Header, 8)
	header["Accept"] = jsonHeader
	header["Accept-Encoding"] = identityHeader
	header["Content-Type"] = jsonHeader
	header["User-Agent"] = userAgentHeader
	if r.config.Propagator != nil {
		r.config.Propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
	out := newOutgoing(body)
	req := &http.Request{
		Method: http.MethodPost,
		URL: &url.URL{
			Scheme:   "https",
			Host:     x.route.host,
			Path:     x.route.prefix + x.hook.Path(x.handler),
			RawQuery: x.query,
		},
		Header:        header,
		ContentLength: body.Size(),
		Body:          out.reader(),
		GetBody:       out.again,
	}
	resp, err := p.transport().RoundTrip(req.WithContext(a.trace(ctx)))
	if err != nil {
		x.sent = out.detach(a.wrote.Load())
		return nil, err
	}
	x.outgoing, x.attempt = out, a
	return resp, nil
}

// attempt watches how far an attempt gets. Its trace may be called after the attempt has ended.
type attempt struct {
	hooks     httptrace.ClientTrace
	connected atomic.Bool // the request was given a connection
	wrote     atomic.Bool // the request was written, all of it
	// unnegotiated tells that client and server did not agree on a protocol when the connection was made, but went on.
	unnegotiated atomic.Bool
}

func (a *attempt) trace(ctx context.Context) context.Context {
	a.hooks.GotConn = func(info httptrace.GotConnInfo) {
		a.connected.Store(true)
		if c, ok := info.Conn.(interface{ ConnectionState() tls.ConnectionState }); ok && !info.Reused {
			a.unnegotiated.Store(c.ConnectionState().NegotiatedProtocol == "")
		}
	}
	a.hooks.WroteRequest = func(info httptrace.WroteRequestInfo) {
		if info.Err == nil {
			a.wrote.Store(true)
		}
	}
	return httptrace.WithClientTrace(ctx, &a.hooks)
}

// unsent tells whether the extension cannot have seen the request: there was no connection, or the server had closed a
// kept one before the request was on it.
func (a *attempt) unsent(err error) bool { return !a.connected.Load() || isClosedIdle(err) }
