// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// errand is what the gateway wants of an extension, whichever protocol that speaks, and how it says what became of it.
type errand struct {
	verb    string // for messages: "call extension"
	hook    *catalog.Hook
	timeout time.Duration

	curtailed bool // the caller's deadline comes before timeout has passed
}

// errandOf returns the errand of a call to a handler, and discoveryOf that of discovery, in the version of h.
func errandOf(c Call) errand {
	return errand{verb: "call extension", hook: c.Hook, timeout: c.Handler.Handler.Timeout}
}

func discoveryOf(h *catalog.Hook) errand {
	return errand{verb: "discover handlers", hook: h, timeout: discoveryTimeout}
}

// bound gives ctx the deadline that the errand has, if the caller's is not before that.
func (x *errand) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if x.curtailed = ok && time.Until(deadline) < x.timeout; x.curtailed {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, x.timeout)
}

func (x *errand) fail(kind hook.Kind, text string, cause error) *hook.Error {
	return &hook.Error{Kind: kind, Message: x.verb + ": " + text, Cause: cause}
}

// tooLarge is the error of a request that is larger than an extension has to take.
func (x *errand) tooLarge(size, most int64) *hook.Error {
	return hook.Errorf(hook.TooLarge, "%s: request has %d bytes, which is more than %d", x.verb, size, most)
}

// ended classifies the end of ctx.
func (x *errand) ended(ctx context.Context, err error) *hook.Error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return x.fail(hook.Canceled, "the caller left", err)
	case x.curtailed:
		return x.fail(hook.Timeout, "no answer before the caller's deadline", err)
	}
	return x.fail(hook.Timeout, "no answer within "+x.timeout.String(), err)
}

// discovered returns what an extension's answer to discovery says.
func (x *errand) discovered(c *catalog.Catalog, out proto.Message) (Discovered, *hook.Error) {
	if status, _ := catalog.StatusOf(out); status != catalog.Success {
		return Discovered{}, x.fail(hook.BadResponse, "the extension answered Failure: "+cut(catalog.MessageOf(out)), nil)
	}
	d, err := discovered(c, handlersOf(out))
	if err != nil {
		return Discovered{}, x.fail(hook.BadResponse, "answer: "+err.Error(), nil)
	}
	return d, nil
}
