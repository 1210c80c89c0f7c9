// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// Snapshots gives the registry's current snapshot, without blocking.
type Snapshots interface {
	Snapshot() *registry.Snapshot
}

// Dispatcher decides which handlers answer a request, calls them, and makes one answer of theirs.
type Dispatcher struct {
	registry   Snapshots
	namespaces Namespaces
	caller     Caller
	// outer are the decorators that every call to a handler passes, also one that cannot be made.
	outer func(Caller) Caller
	// codec makes the JSON of requests that did not come as one, for the conditions of policies.
	codec *codec.Codec
}

// NewDispatcher returns a Dispatcher that calls handlers through transport, and reads requests with c where a policy asks. Each call is bounded in time, converted,
// subject to the handler's failure policy and seen by observe, in this order from the inside out.
func NewDispatcher(r Snapshots, n Namespaces, c *codec.Codec, transport Caller, observe func(Caller) Caller) *Dispatcher {
	outer := withFailurePolicy
	if observe != nil {
		outer = func(next Caller) Caller { return observe(withFailurePolicy(next)) }
	}
	return &Dispatcher{
		registry: r, namespaces: n, caller: outer(withHookVersion(withDeadline(transport))), outer: outer, codec: c,
	}
}

// Dispatch answers one request of hook h. The handler is a registered name or label; empty, or the name of the hook itself
// for a hook whose answers can be merged, means every handler that matches. Where the gateway answers for one extension
// alone, the handler's name is the extension's. The request is only read.
//
// The error, if there is one, is a *hook.Error of any kind but Unauthenticated, Forbidden and TooLarge. A Failure that an
// extension answered is an answer, not an error.
func (d *Dispatcher) Dispatch(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) (proto.Message, error) {
	snapshot := d.registry.Snapshot()
	if !snapshot.Ready() {
		return nil, hook.Errorf(hook.NotReady, "%s: try again", snapshot.Unready())
	}
	seen, err := inHub(h, req)
	if err != nil {
		return nil, err
	}
	if err := checkObjects(seen); err != nil {
		return nil, err
	}
	if handler != "" && (snapshot.Sole() || !isAggregate(h, handler)) {
		e, err := d.resolve(snapshot, h, handler, seen)
		if err != nil {
			return nil, err
		}
		var undecided error
		if e.Policy != nil {
			var admitted bool
			if admitted, undecided = d.subject(ctx, h, seen).admits(ctx, e.Policy); !admitted && undecided == nil {
				return nil, hook.Errorf(hook.UnknownHandler, "handler %q is not for this request: ExtensionPolicy %q does not match", e.Name, e.Policy.Name)
			}
		}
		return d.call(ctx, h, e, req, undecided)
	}
	entries, undecided := d.matching(ctx, snapshot, h, seen)
	if !h.Mergeable {
		if len(entries) != 1 {
			return nil, wantOne(h, entries)
		}
		return d.call(ctx, h, entries[0], req, undecided[entries[0]])
	}
	return merge(h, entries, d.callAll(ctx, h, entries, undecided, req))
}

// subject returns the request as policies look at it: in the newest version of its hook. The caller's body is that if h is.
func (d *Dispatcher) subject(ctx context.Context, h *catalog.Hook, req proto.Message) *subject {
	s := &subject{req: req, codec: d.codec}
	if h == h.Hub() {
		s.body = bodyOf(ctx)
	}
	return s
}

// isAggregate tells whether handler names all handlers of h: see Discovery.
func isAggregate(h *catalog.Hook, handler string) bool {
	return h.Mergeable && strings.EqualFold(handler, h.Hook)
}

// resolve finds the handler of that name and checks that it may answer.
func (d *Dispatcher) resolve(s *registry.Snapshot, h *catalog.Hook, name string, req proto.Message) (*registry.Entry, error) {
	e, ok := s.Handler(name)
	if !ok {
		return nil, hook.Errorf(hook.UnknownHandler, "no handler %q: the handlers of %s are %s", name, h.Hook, names(s.Handlers(h.GroupHook())))
	}
	if e.Handler.Hook.GroupHook() != h.GroupHook() {
		return nil, hook.Errorf(hook.UnknownHandler, "handler %q serves the hook %s, not %s", e.Name, e.Handler.Hook.Hook, h.Hook)
	}
	if in := (scope{request: req, source: d.namespaces}); !in.matches(e) {
		return nil, hook.Errorf(hook.UnknownHandler, "handler %q is not for namespace %q: the namespaceSelector of ExtensionConfig %q does not match",
			e.Name, strings.Join(in.namespaces, ", "), e.Registration.Name)
	}
	return e, nil
}

// matching returns the handlers of h that the request is for, by name: their namespaceSelector matches, and so does their
// policy. Among them are those whose policy could not be evaluated; undecided, usually nil, has their errors.
func (d *Dispatcher) matching(ctx context.Context, s *registry.Snapshot, h *catalog.Hook, req proto.Message) (
	entries []*registry.Entry, undecided map[*registry.Entry]error,
) {
	all := s.Handlers(h.GroupHook())
	if len(all) == 0 {
		return nil, nil
	}
	in := scope{request: req, source: d.namespaces}
	entries = make([]*registry.Entry, 0, len(all))
	var subject *subject
	for _, e := range all {
		if !in.matches(e) {
			continue
		}
		if e.Policy != nil {
			if subject == nil {
				subject = d.subject(ctx, h, req)
			}
			switch admitted, err := subject.admits(ctx, e.Policy); {
			case err != nil:
				if undecided == nil {
					undecided = map[*registry.Entry]error{}
				}
				undecided[e] = err
			case !admitted:
				continue
			}
		}
		entries = append(entries, e)
	}
	return entries, undecided
}

func wantOne(h *catalog.Hook, entries []*registry.Entry) error {
	if len(entries) == 0 {
		return hook.Errorf(hook.UnknownHandler, "no handler of %s matches", h.Hook)
	}
	return hook.Errorf(hook.Ambiguous, "%s needs one handler and %d match, say which: %s", h.Hook, len(entries), names(entries))
}

// names lists handlers for a message: the first ten, in their order.
func names(entries []*registry.Entry) string {
	const most = 10
	if len(entries) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, e := range entries {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(entries)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(e.Name)
	}
	return b.String()
}

// result is what one of several handlers answered; neither, if it was not called because another one failed before.
type result struct {
	response proto.Message
	err      error
}

// callAll calls the handlers: those with an order one after the other, until one fails, then all others at the same time. It
// waits for all, so that what is made of the results depends on none of their timing.
func (d *Dispatcher) callAll(
	ctx context.Context, h *catalog.Hook, entries []*registry.Entry, undecided map[*registry.Entry]error, req proto.Message,
) []result {
	results := make([]result, len(entries))
	ordered := inOrder(entries)
	if len(ordered) == 0 {
		d.callTogether(ctx, h, entries, undecided, req, results)
		return results
	}
	// A sequence of handlers takes no longer than one handler may.
	bounded, cancel := context.WithTimeout(ctx, maxTimeout)
	defer cancel()
	for _, i := range ordered {
		results[i].response, results[i].err = d.call(bounded, h, entries[i], req, undecided[entries[i]])
		if results[i].ends() {
			return results
		}
	}
	d.callTogether(bounded, h, entries, undecided, req, results)
	return results
}

// callTogether calls the handlers without an order at the same time, one of them in this goroutine.
func (d *Dispatcher) callTogether(
	ctx context.Context, h *catalog.Hook, entries []*registry.Entry, undecided map[*registry.Entry]error, req proto.Message, results []result,
) {
	first := -1
	var wg sync.WaitGroup
	for i, e := range entries {
		switch {
		case hasOrder(e):
		case first < 0:
			first = i
		default:
			wg.Go(func() { results[i].response, results[i].err = d.call(ctx, h, e, req, undecided[e]) })
		}
	}
	if first >= 0 {
		results[first].response, results[first].err = d.call(ctx, h, entries[first], req, undecided[entries[first]])
	}
	wg.Wait()
}

// call calls one handler. A panic in it is its error, and no other call's. If nobody knows whether the handler is to be
// called, undecided tells why, and is what becomes of the call.
func (d *Dispatcher) call(ctx context.Context, h *catalog.Hook, e *registry.Entry, req proto.Message, undecided error) (response proto.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			response, err = nil, asError(recovered(p)).WithHandler(e.Name)
		}
	}()
	c := &extension.Call{Hook: h, Handler: e, Request: withSettings(req, e.Registration.Settings)}
	if c.Request == req {
		c.Body = bodyOf(ctx)
	}
	caller := d.caller
	if undecided != nil {
		caller = d.outer(CallerFunc(func(context.Context, *extension.Call) (proto.Message, error) { return nil, undecided }))
	}
	response, err = caller.Call(ctx, c)
	if err != nil {
		return nil, asError(err).WithHandler(e.Name)
	}
	return response, nil
}

// bodyOf returns the body of the request that ctx belongs to, if it is a JSON that extensions can be sent as it is.
func bodyOf(ctx context.Context) []byte {
	if in := inboundFrom(ctx); in != nil && in.body != nil && in.body.complete {
		return in.body.body
	}
	return nil
}
