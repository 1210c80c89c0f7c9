// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protect has the links of the chain that protect an extension from its callers, and callers from an extension
// that does not answer: its circuits, and the bounds of its calls. The state is that of package extensionstate.
package protect

import (
	"context"
	"errors"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/admission"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
)

// Admission bounds the calls to each extension that are in flight, and those that wait for it. Waiting counts against
// the deadline, which is therefore outside. Everything that takes memory or time for a call is inside.
func Admission(extensions *extensionstate.States) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			s, limits := extensions.Of(c.Handler), extensionstate.LimitsOf(c.Handler)
			waited, err := s.Gate.Enter(ctx, limits, c.Handler.Name)
			if err != nil {
				return extension.Result{Inconclusive: true}, notAdmitted(limits, err)
			}
			defer s.Gate.Leave(limits)
			result, err := next(ctx, c)
			if waited && hook.KindOf(err) == hook.Timeout {
				result.Inconclusive = true // a part of the time has gone by before the call was sent
			}
			return result, err
		}
	}
}

// notAdmitted returns the error of a call that the gate refused. One for which there is no room fails as the
// extension's failure, which the failure policy may hide: the extension is slower than its callers.
func notAdmitted(l *admission.Limits, err error) *hook.Error {
	if dismissed, ok := errors.AsType[*hook.Error](err); ok {
		return dismissed
	}
	switch {
	case errors.Is(err, admission.ErrFull):
		return hook.Errorf(hook.Unreachable,
			"extension is busy: it has %d calls in flight and %d waiting, and its limits allow no more",
			l.MaxInFlight, l.MaxWaiting).WithRetryAfter(limits.RefusedRetry)
	case errors.Is(err, context.DeadlineExceeded):
		return hook.Errorf(hook.Timeout, "waited for one of %d calls in flight to end", l.MaxInFlight)
	}
	return hook.Errorf(hook.Canceled, "the caller left")
}
