// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/body"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/network/wire"
	"github.com/hookgate/hookgate/registry"
)

// GRPC calls extensions that implement the services of the contract. It is safe for concurrent use.
//
// Calls take turns on the addresses of a host, which is looked up every half minute, or on the endpoints of a Service,
// if these are known, as they come and go. A server that offers the standard health service is called only while it
// says that it is serving. No proxy is used.
type GRPC struct {
	config   Config
	channels channels
	absences absences
	now      func() time.Time
	// healthTimeout bounds the question for the health service.
	healthTimeout time.Duration
}

// NewGRPC returns a GRPC without connections.
func NewGRPC(config Config) *GRPC {
	config.setDefaults()
	g := &GRPC{config: config, now: time.Now, healthTimeout: healthTimeout}
	g.channels.config = &g.config
	g.channels.wire = wire.DialOptions()
	return g
}

// Call sends the request to the handler and returns its answer, as REST.Call does, and with the same kinds of errors.
// Call.Body is not used. Without a Request, it sends Partial and Elements.
func (g *GRPC) Call(ctx context.Context, c Call) (Result, error) {
	x := callRequest(c)
	in, err := c.message()
	if err != nil {
		return Result{}, x.fail(hook.Internal, err.Error(), err).WithHandler(c.Handler.Name)
	}
	out, _, failed := g.invoke(ctx, c.Handler.Registration.ClientConfig, &x, in)
	result := Result{
		Response: out, Sent: x.rpc.Sent.Load(), Received: x.rpc.Received.Load(),
		Inconclusive: x.isInconclusive(failed), Connected: !x.rpc.Unsent(), Decided: x.decided, Misspelt: x.misspelt,
		Waited: x.waits.waited,
	}
	if failed != nil {
		return result, failed.WithHandler(c.Handler.Name)
	}
	return result, nil
}

// message returns the request over gRPC.
func (c *Call) message() (wire.Sized, error) {
	switch name := c.Handler.Handler.Name; {
	case c.Request != nil:
		return wire.SizeOf(catalog.WithHandler(c.Request, name)), nil
	case c.Elements != nil:
		return wire.SizeOf(catalog.WithHandler(c.Partial, name)).With(c.Elements), nil
	}
	return wire.Sized{}, errors.New("the gateway has the request only as JSON, and cannot send it over gRPC")
}

// Discover asks the extension at cc for its handlers, as REST.Discover does. One that does not implement discovery but
// offers server reflection has one handler for each hook of the services that it serves, named as the hook in lower
// case.
func (g *GRPC) Discover(ctx context.Context, cc registry.ClientConfig) (Discovered, error) {
	bounded, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout) // for all requests together
	defer cancel()
	memory, err := g.config.reserveDiscovery(bounded, cc)
	if err != nil {
		return Discovered{}, err
	}
	defer memory.Release()
	request := func(h *catalog.Hook) *request {
		x := discoveryRequest(h, g.config.discoveryVia())
		x.reserve, x.memory = memory.Within(bounded), memory
		return &x
	}
	d, absent, failed := discoverGroups(g.config.Catalog, cc.URL, &g.absences, func(
		h *catalog.Hook,
	) (Discovered, bool, *hook.Error) {
		x := request(h)
		out, absent, failed := g.invoke(bounded, cc, x, wire.SizeOf(h.Request.New().Interface()))
		if failed != nil {
			return Discovered{}, absent, failed
		}
		d, failed := x.discovered(g.config.Catalog, out)
		return d, false, failed
	})
	if absent {
		d, failed = g.reflect(bounded, cc, request)
	}
	if failed != nil {
		return Discovered{}, failed
	}
	d.HealthUnchecked = g.lacksHealth(bounded, cc)
	return d, nil
}

// invoke sends in and returns the answer, a fresh message that has been checked, or whether the server does not
// implement the method.
func (g *GRPC) invoke(ctx context.Context, cc registry.ClientConfig, x *request, in wire.Sized) (
	response proto.Message, unimplemented bool, failed *hook.Error,
) {
	x.rpc = &connect.RPC{}
	size := int64(in.Size)
	if size > g.config.BodyBytes {
		return nil, false, x.tooLarge(size, g.config.BodyBytes)
	}
	if failed := x.grow(size); failed != nil {
		return nil, false, failed
	}
	ctx, cancel := x.withTimeout(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return nil, false, x.ended(ctx, ctx.Err())
	}
	channel, err := g.channels.get(cc, g.now())
	if err != nil {
		return nil, false, x.fail(hook.Unreachable, err.Error(), err)
	}
	defer channel.release()

	answer, err := g.send(ctx, channel, x, in)
	out := answer.Message
	switch failed := x.beyond(answer.Err); {
	case failed != nil:
		return nil, false, failed
	case errors.Is(answer.Err, wire.ErrTooMany):
		return nil, false, x.fail(hook.BadResponse, "answer: "+answer.Err.Error(), nil)
	case answer.Err != nil && ctx.Err() != nil:
		return nil, false, x.ended(ctx, answer.Err)
	case errors.Is(answer.Err, body.ErrTooLarge):
		return nil, false, x.fail(hook.BadResponse, fmt.Sprintf("answer is larger than %d bytes", g.config.BodyBytes), nil)
	case errors.Is(answer.Err, body.ErrGzip):
		return nil, false, x.fail(hook.BadResponse, "answer is not valid gzip", answer.Err)
	case answer.Err != nil:
		return nil, false, x.fail(hook.BadResponse, "answer is not a message of the contract", answer.Err)
	case err != nil:
		x.unresolved = channel.hosts.unresolved(x.rpc)
		failed, unimplemented := x.refused(ctx, channel.conn, err)
		return nil, unimplemented, failed
	}
	if text := wrongStatus(out); text != "" {
		return nil, false, x.fail(hook.BadResponse, "answer: "+text, nil)
	}
	if err := g.check(x, out); err != nil {
		if ctx.Err() != nil {
			return nil, false, x.ended(ctx, err)
		}
		return nil, false, x.fail(hook.BadResponse, "answer: "+cut(err.Error()), err)
	}
	return out, false, nil
}

// check checks an answer, a large one as heavy work.
func (g *GRPC) check(x *request, out proto.Message) error {
	guard := codec.Guard{Reserve: x.reserve, Misspelt: x.spell}
	if x.rpc.Received.Load() > budget.Step {
		if err := x.work.Step(); err != nil {
			return err
		}
		defer x.work.End()
		guard.Step = x.work.Step
	}
	if err := g.config.Codec.CheckGuarded(out, guard); err != nil {
		return err
	}
	return checkPatches(out, guard.Step)
}

// send sends in until there is an answer, or another attempt is useless. Streams that a server refuses, or that come
// after its GOAWAY, are repeated by grpc.
func (g *GRPC) send(ctx context.Context, c *channel, x *request, in wire.Sized) (*wire.Message, error) {
	again := newRetries(c.budget)
	x.waits.outage, x.waits.most = c.outage, g.config.RestartWait
	for {
		answer := &wire.Message{
			Message: x.hook.Response.New().Interface(), Max: g.config.BodyBytes, Reserve: x.reserve, Work: x.begin(ctx),
		}
		err := c.conn.Invoke(x.rpc.Watch(g.outgoing(ctx, x.via)), x.hook.Method, in, answer, grpc.StaticMethod())
		if answer.Size > 0 {
			x.rpc.Received.Store(int64(answer.Size)) // gRPC has seen it compressed
		}
		if !x.rpc.Unsent() {
			c.outage.end()
		}
		if err == nil || answer.Err != nil || ctx.Err() != nil {
			return answer, err
		}
		if f := c.conn.Classify(x.rpc, err); f != nil {
			if !x.rpc.Unsent() || f.Kind != hook.Unreachable || !f.Temporary || !x.again(ctx, &again, false) {
				return answer, err
			}
			x.rpc = &connect.RPC{} // the old one may be written to after its attempt has ended
			continue
		}
		after, asked := retryInfo(err)
		if kind, decided := decidedReason(err); decided && kind == hook.Unreachable {
			asked = false // a gateway answers so at once, and not to be waited for
		}
		if !asked || !again.wait(ctx, after) {
			return answer, err
		}
		x.rpc = &connect.RPC{}
	}
}

// outgoing adds the trace context and the way to the metadata of a request.
func (g *GRPC) outgoing(ctx context.Context, way via.Way) context.Context {
	if g.config.Propagator == nil && way == "" {
		return ctx
	}
	carrier := propagation.MapCarrier{}
	if g.config.Propagator != nil {
		g.config.Propagator.Inject(ctx, carrier)
	}
	md := metadata.New(carrier)
	if way != "" {
		md.Set(via.Header, string(way))
	}
	return metadata.NewOutgoingContext(ctx, md)
}

// Retain keeps the connections to the given extensions and closes all others, as REST.Retain does.
func (g *GRPC) Retain(ccs []registry.ClientConfig) {
	g.channels.retain(ccs)
	g.absences.retain(ccs)
}

// Close closes all connections, as Retain does without extensions. It does not wait for calls that are under way.
func (g *GRPC) Close() { g.channels.retain(nil) }
