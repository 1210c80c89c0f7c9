// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/registry"
)

// request is one request to an extension, in either protocol.
type request struct {
	operation string // for messages: "call extension"
	hook      *catalog.Hook
	timeout   time.Duration
	via       via.Way
	reserve   func(bytes int64) error // nil bounds nothing
	memory    worker                  // nil bounds nothing
	work      budget.Work             // with the answer

	// unresolved is why the host had no address when ctx ended; nil if that is not why there was no answer.
	unresolved error

	callerFirst  bool // the caller's deadline comes before timeout has passed
	inconclusive bool // the server has found fault with the request
	connected    bool // the last attempt had a connection
	decided      bool // a gateway has decided the error

	patient  bool // it waits for an extension that takes no connections
	waits    waits
	misspelt []string     // members of the answer
	rpc      *connect.RPC // the last attempt, over gRPC
}

// maxMisspelt is the number of misspelt members that are kept of an answer.
const maxMisspelt = 8

// spell keeps a misspelt member of the answer.
func (r *request) spell(m codec.Misspelling) {
	if text := m.String(); len(r.misspelt) < maxMisspelt && !slices.Contains(r.misspelt, text) {
		r.misspelt = append(r.misspelt, text)
	}
}

// CallOperation begins the errors of calls.
const CallOperation = "call extension"

// callRequest returns the request of a call to a handler.
func callRequest(c Call) request {
	return request{
		operation: CallOperation, hook: c.Hook, timeout: c.Handler.Handler.Timeout, via: c.Via,
		reserve: c.Memory.Reserve(), memory: c.Memory, patient: true,
	}
}

// again waits before the next attempt of a request that the extension cannot have processed, or reports false at once.
// connected says that the server is there.
func (r *request) again(ctx context.Context, retries *retries, connected bool) bool {
	if r.patient && !connected {
		return r.waits.wait(ctx)
	}
	return retries.wait(ctx, 0)
}

// isInconclusive reports whether err, which may be nil, says nothing about the extension.
func (r *request) isInconclusive(err *hook.Error) bool {
	return r.inconclusive || err != nil && err.Kind == hook.Timeout && (r.work.Waited() || r.waits.waited)
}

// worker is what takes part in turns with heavy work.
type worker interface {
	Work(ctx context.Context) budget.Work
}

// begin returns the work with an answer, within ctx.
func (r *request) begin(ctx context.Context) *budget.Work {
	if r.memory != nil {
		r.work = r.memory.Work(ctx)
	}
	return &r.work
}

// discoveryRequest returns a request for discovery, in the version of h.
func discoveryRequest(h *catalog.Hook, way via.Way) request {
	return request{operation: discoveringWith(h), hook: h, timeout: limits.DiscoveryTimeout, via: way}
}

// discoveringWith returns the operation of a discovery in messages. That of Cluster API's hooks needs no name.
func discoveringWith(h *catalog.Hook) string {
	if h.Group == hook.Group {
		return discovering
	}
	return discovering + " with " + h.Hook
}

// discovering is the operation of discovery in messages.
const discovering = "discover handlers"

// discoveryBytes is what discovery takes besides a large answer.
const discoveryBytes = 64 << 10

// reserveDiscovery reserves memory to discover the handlers of an extension.
func (c *Config) reserveDiscovery(ctx context.Context, cc registry.ClientConfig) (*budget.Reservation, error) {
	memory, err := c.Memory.Reserve(ctx, budget.Extension(cc.URL), discoveryBytes)
	if err != nil {
		x := request{operation: discovering}
		return nil, x.beyond(err)
	}
	return memory, nil
}

// beyond returns the error of memory that was refused, with the operation in its text; nil for any other error.
func (r *request) beyond(err error) *hook.Error {
	var e *hook.Error
	if !errors.As(err, &e) {
		return nil
	}
	c := *e
	c.Message = r.operation + ": " + e.Message
	return &c
}

// grow reserves memory of the request, as far as it is more than any call has.
func (r *request) grow(bytes int64) *hook.Error {
	if r.reserve == nil || bytes <= discoveryBytes {
		return nil
	}
	if err := r.reserve(bytes); err != nil {
		return r.beyond(err)
	}
	return nil
}

// withTimeout gives ctx the request's timeout, unless the caller's deadline comes first.
func (r *request) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if r.callerFirst = ok && time.Until(deadline) < r.timeout; r.callerFirst {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.timeout)
}

func (r *request) fail(kind hook.Kind, text string, cause error) *hook.Error {
	return &hook.Error{Kind: kind, Message: r.operation + ": " + text, Cause: cause}
}

// failed returns the error of a failure of the network. The cause is err, which says more than the failure's.
func (r *request) failed(f *connect.Failure, err error) *hook.Error {
	text := f.Text
	if f.Reason == connect.NotGRPC || f.Reason == connect.NoHTTP2 {
		text += ": is it a REST extension?"
	}
	return r.fail(f.Kind, text, err)
}

// tooLarge returns the error of a request that is larger than an extension has to accept.
func (r *request) tooLarge(size, limit int64) *hook.Error {
	return hook.Errorf(hook.TooLarge, "%s: request has %d bytes, which is more than %d", r.operation, size, limit)
}

// decidedBy returns the error of a request that failed at a gateway behind this one. The kind and the message are that
// gateway's, which works: it has judged the call, and has circuits of its own for what is behind it.
func (r *request) decidedBy(kind hook.Kind, message string, retryAfter time.Duration, cause error) *hook.Error {
	if message == "" {
		message = "the extension answered " + kind.String()
	}
	r.decided, r.inconclusive = true, true
	return r.fail(kind, redact.Cut(text.Printable(message), limits.LoopQuoteBytes), cause).WithRetryAfter(retryAfter)
}

// ended returns the error of a request whose context ended.
func (r *request) ended(ctx context.Context, err error) *hook.Error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return r.fail(hook.Canceled, "the caller left", err)
	case r.unresolved != nil:
		return r.failed(connect.Classify(r.unresolved), r.unresolved)
	case r.callerFirst:
		return r.fail(hook.Timeout, "no answer before the caller's deadline", err)
	}
	return r.fail(hook.Timeout, "no answer within "+r.timeout.String(), err)
}

// discovered returns what an answer to discovery says.
func (r *request) discovered(c *catalog.Catalog, answer proto.Message) (Discovered, *hook.Error) {
	if status, _ := catalog.StatusOf(answer); status != catalog.Success {
		return Discovered{}, r.fail(hook.BadResponse,
			"the extension answered Failure: "+cmp.Or(cut(catalog.MessageOf(answer)), "it does not say why"), nil)
	}
	d, err := discovered(c, r.hook, catalog.HandlersOf(answer))
	if err != nil {
		return Discovered{}, r.fail(hook.BadResponse, "answer: "+err.Error(), nil)
	}
	d.Misspelt = r.misspelt
	return d, nil
}
