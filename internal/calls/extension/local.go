// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// callLocal answers a call in this process.
func callLocal(ctx context.Context, c *Call) (Result, error) {
	registration := c.Handler.Registration
	guard := policy.Guard{Step: ctx.Err}
	if c.Memory != nil {
		guard.Reserve = c.Memory.Reserve()
	}
	// Others may wait for an API server, and must not keep a turn meanwhile.
	if c.Hook.Category == catalog.TopologyMutation {
		work := c.Memory.Work(ctx)
		defer work.End()
		guard.Step = work.Step
	}
	response, err := registration.InProcess.Answer(ctx, c.Request, guard)
	var known *hook.Error
	switch {
	case err == nil:
		return Result{Response: response}, nil
	case errors.As(err, &known):
		return Result{Inconclusive: true}, known
	case errors.Is(err, context.Canceled):
		return Result{Inconclusive: true}, hook.Errorf(hook.Canceled, "the caller left before the answer").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return Result{Inconclusive: true}, hook.Errorf(hook.Timeout, "%s did not answer in time", registration.Describe()).
			WithCause(err)
	}
	return Result{Inconclusive: true}, hook.Errorf(hook.Internal, "%s cannot answer", registration.Describe()).
		WithCause(err)
}
