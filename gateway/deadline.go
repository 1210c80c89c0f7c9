// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

// deadline bounds calls by the least of the handler's timeout, the caller's deadline less a margin, and 30 s. A timeout
// is inconclusive if the caller's deadline left the extension less than three quarters of its own timeout. The rest
// makes up for margins and networks: a caller that waits for as long as the handler's timeout must not hide that it
// hangs.
func deadline(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		timeout, byCaller := timeoutOf(ctx, c)
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		result, err := next(ctx, c)
		if err == nil || hook.KindOf(err) != hook.Timeout && ctx.Err() == nil || result.Decided {
			return result, err
		}
		if byCaller && timeout < c.Handler.Handler.Timeout*3/4 {
			result.Inconclusive = true
		}
		if hook.KindOf(err) != hook.Timeout { // the name of the host was still being looked up
			return result, err
		}
		// The text must not depend on how much of the caller's deadline was left.
		text := "no answer before the caller's deadline"
		if !byCaller {
			text = "no answer within its timeout of " + timeout.String()
		}
		return result, hook.Errorf(hook.Timeout, "%s", text).WithCause(outcome.CauseOf(err))
	}
}

// timeoutOf returns how long a call may take, and reports whether the caller's deadline decides that.
func timeoutOf(ctx context.Context, c extension.Call) (timeout time.Duration, byCaller bool) {
	timeout = min(c.Handler.Handler.Timeout, limits.Timeout)
	if end, ok := ctx.Deadline(); ok {
		left := time.Until(end)
		if left -= min(left/10, bounds.MaxMargin); left < timeout {
			return left, true
		}
	}
	return timeout, false
}
