// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
)

const (
	// maxTimeout is the longest that a handler may take, by the rules of the Runtime SDK.
	maxTimeout = 30 * time.Second
	// maxMargin is the most that is kept of a caller's deadline for the way back, so that the gateway's answer, which
	// names the handler, arrives before the caller gives up.
	maxMargin = 500 * time.Millisecond
)

// withDeadline bounds next by the least of the handler's timeout, the caller's deadline less a margin, and 30 s.
func withDeadline(next Caller) Caller {
	return CallerFunc(func(ctx context.Context, c *extension.Call) (proto.Message, error) {
		timeout := min(c.Handler.Handler.Timeout, maxTimeout)
		byCaller := false
		if deadline, ok := ctx.Deadline(); ok {
			remaining := time.Until(deadline)
			if budget := remaining - min(remaining/10, maxMargin); budget < timeout {
				timeout, byCaller = budget, true
			}
		}
		bounded, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		response, err := next.Call(bounded, c)
		if hook.KindOf(err) != hook.Timeout || err == nil {
			return response, err
		}
		// The text must not depend on how much of the caller's deadline was left.
		if byCaller {
			return nil, hook.Errorf(hook.Timeout, "no answer before the caller's deadline").WithCause(causeOf(err))
		}
		return nil, hook.Errorf(hook.Timeout, "no answer within its timeout of %s", timeout).WithCause(causeOf(err))
	})
}

// causeOf returns what the text of err keeps from callers, or err itself.
func causeOf(err error) error {
	if cause := errors.Unwrap(err); cause != nil {
		return cause
	}
	return err
}
