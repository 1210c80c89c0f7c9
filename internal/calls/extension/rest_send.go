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

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/registry"
)

// The values of the headers that every request has. net/http only reads them.
var (
	jsonHeader      = []string{"application/json"}
	identityHeader  = []string{"identity"}
	userAgentHeader = []string{"hookgate"}
)

// maxStreams bounds how often net/http may repeat a request over HTTP/2 that the server has not processed.
const maxStreams = 8

// errGoesAway is the error of a request that the server has refused that often.
var errGoesAway = &connect.Failure{
	Kind: hook.Unreachable, Text: "the server refuses every request, or goes away before it answers",
}

// restRequest is one request in JSON over HTTP, however many attempts it takes.
type restRequest struct {
	request
	handler string // empty for discovery
	encoded []byte // the body, if it need not be encoded

	route *route
	query string

	body           *restBody // of the attempt that was answered
	attempt        *attempt
	sent, received int64
	absent         bool // the server has nothing at the path
}

// do sends in and returns the answer.
func (r *REST) do(
	ctx context.Context, cc registry.ClientConfig, x *restRequest, in proto.Message,
) (proto.Message, *hook.Error) {
	var err error
	if x.route, err = r.routes.get(cc); err != nil {
		return nil, x.fail(hook.Unreachable, err.Error(), err)
	}
	body, failed := r.encode(x, in)
	if failed != nil {
		return nil, failed
	}

	ctx, cancel := x.withTimeout(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return nil, x.ended(ctx, ctx.Err())
	}
	deadline, _ := ctx.Deadline()
	x.query = connect.TimeoutQuery(deadline, x.timeout)

	resp, p, err := r.send(ctx, x, body)
	if err != nil {
		return nil, x.unanswered(ctx, err)
	}
	defer p.release() // after the body was closed: then the connection is idle, or closed
	// After the whole answer: one may begin while the request is still being sent.
	defer func() { x.sent = x.body.detach(x.attempt.wrote.Load()) }()
	defer func() { _ = resp.Body.Close() }()
	return r.answer(ctx, x, resp)
}

func (r *REST) encode(x *restRequest, in proto.Message) (codec.Body, *hook.Error) {
	if x.encoded != nil {
		return codec.BodyOf(x.encoded), nil // it kept to the same limit when it came
	}
	body, err := r.config.Codec.EncodeWithin(in, r.config.BodyBytes, codec.Guard{Reserve: x.reserve})
	if failed := x.beyond(err); failed != nil {
		return body, failed
	}
	if errors.Is(err, codec.ErrTooLarge) {
		return body, hook.Errorf(hook.TooLarge, "%s: request has more than %d bytes as JSON", x.operation, r.config.BodyBytes)
	}
	if err != nil {
		if wrong, ok := errors.AsType[*codec.Error](err); ok {
			return body, x.fail(hook.InvalidRequest, "request: "+wrong.Error(), err)
		}
		return body, x.fail(hook.Internal, "request: "+err.Error(), err)
	}
	return body, nil
}

// send sends the body until there is an answer, or another attempt is useless. The caller must release the pool after
// it has closed the answer's body.
func (r *REST) send(ctx context.Context, x *restRequest, body codec.Body) (*http.Response, *pool, error) {
	again := newRetries(&x.route.budget)
	x.waits.outage, x.waits.most = &x.route.outage, r.config.RestartWait
	for {
		p := x.route.host.acquire(r.now())
		a := &attempt{}
		resp, err := r.roundTrip(ctx, x, body, p, a)
		if x.connected = a.connected.Load(); x.connected {
			x.waits.outage.end()
		}
		if err == nil {
			x.route.host.answered(p)
			after, asked := retryAfter(resp, r.now())
			if kind, decided := decidedKind(resp); decided && kind == hook.Unreachable {
				asked = false // a gateway answers so at once, and not to be waited for
			}
			if !asked || !again.wait(ctx, after) {
				return resp, p, nil
			}
			_ = resp.Body.Close()
			x.sent = x.body.detach(a.wrote.Load())
			p.release()
			continue
		}
		p.release()
		switch {
		case ctx.Err() != nil:
			return nil, nil, err
		case connect.IsNoCommonProtocol(err) && x.route.host.refusedHTTP1(p):
		default:
			if a.unnegotiated.Load() && connect.IsHungUp(err) && !x.route.host.knownHTTP1.Load() {
				// Perhaps a server that speaks HTTP/2 alone and does not say so; perhaps it has seen the request.
				x.route.host.refusedHTTP1(p)
			}
			if !a.unsent(err) || !connect.Classify(err).Temporary || !x.again(ctx, &again, x.connected) {
				return nil, nil, err
			}
		}
	}
}

// roundTrip makes one attempt. It follows no redirect, and it adds neither cookies nor credentials.
func (r *REST) roundTrip(
	ctx context.Context, x *restRequest, body codec.Body, p *pool, a *attempt,
) (*http.Response, error) {
	if p.http1 != nil {
		return r.roundTrip1(ctx, x, body, p.http1, a)
	}
	header := make(http.Header, 8)
	header["Accept"] = jsonHeader
	header["Accept-Encoding"] = identityHeader
	header["Content-Type"] = jsonHeader
	header["User-Agent"] = userAgentHeader
	if r.config.Propagator != nil {
		r.config.Propagator.Inject(ctx, propagation.HeaderCarrier(header))
	}
	if x.via != "" {
		header[via.Header] = []string{string(x.via)}
	}
	out := newRESTBody(body)
	req := &http.Request{
		Method: http.MethodPost,
		URL: &url.URL{
			Scheme:   "https",
			Host:     x.route.authority,
			Path:     x.route.prefix + x.hook.Path(x.handler),
			RawQuery: x.query,
		},
		Header:        header,
		ContentLength: body.Size(),
		Body:          out.reader(),
		GetBody:       out.again,
	}
	if p.http2 {
		ctx, a.giveUp = context.WithCancelCause(ctx) // it ends with the call, whose context has a deadline
	}
	resp, err := p.transport().RoundTrip(req.WithContext(a.trace(ctx)))
	if err != nil {
		a.metered.end()
		x.sent = out.detach(a.wrote.Load())
		a.unfinished = out.copy == nil && x.sent < body.Size()
		return nil, err
	}
	resp.Body = meteredBody{resp.Body, &a.metered}
	x.body, x.attempt = out, a
	return resp, nil
}

// roundTrip1 is roundTrip with http1.
func (r *REST) roundTrip1(
	ctx context.Context, x *restRequest, body codec.Body, h *http1, a *attempt,
) (*http.Response, error) {
	buffer, _ := requests.Get().(*[]byte)
	defer requests.Put(buffer)
	text, err := r.appendHeader(ctx, (*buffer)[:0], x, body.Size())
	if err != nil {
		return nil, err
	}
	out := &restBody{body: body}
	large := out
	if body.Size() <= smallBody {
		text, large = body.AppendTo(text), nil
	}
	*buffer = text
	resp, err := h.roundTrip(ctx, text, large, a)
	if err != nil {
		x.sent = out.detach(a.wrote.Load())
		a.unfinished = a.unfinished || large != nil && x.sent < body.Size()
		return nil, err
	}
	x.body, x.attempt = out, a
	return resp, nil
}

// attempt records how far an attempt gets. net/http may call its trace after the attempt has ended.
type attempt struct {
	hooks     httptrace.ClientTrace
	connected atomic.Bool // the request was given a connection
	wrote     atomic.Bool // the whole request was written
	// unnegotiated is set if client and server made the connection without agreeing on a protocol.
	unnegotiated atomic.Bool
	unfinished   bool // net/http has not read the whole body, and will not
	metered      meteredCall

	// net/http repeats a request for as long as a server goes away before it has processed it. giveUp, if it is not nil,
	// ends that after maxStreams of them.
	giveUp  context.CancelCauseFunc
	streams atomic.Int32
}

func (a *attempt) trace(ctx context.Context) context.Context {
	a.hooks.GotConn = func(info httptrace.GotConnInfo) {
		a.connected.Store(true)
		a.metered.begin(info.Conn)
		if a.giveUp != nil && a.streams.Add(1) > maxStreams {
			a.giveUp(errGoesAway)
		}
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

// unsent reports whether the extension cannot have processed the request: there was no connection, the server had
// closed a kept one before the request was on it, or the connection broke before the end of the body was sent. Streams
// that a server refuses, or that come after its GOAWAY, are repeated by net/http.
func (a *attempt) unsent(err error) bool {
	return !a.connected.Load() || connect.IsClosedIdle(err) || a.unfinished
}
