// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/hookgate/hookgate/internal/budget"
	"github.com/hookgate/hookgate/internal/extension"
)

const (
	// callBytes is what a call takes besides large bodies, in bytes: its first buffers, its message and its goroutines.
	callBytes = budget.CallBytes
	// reserveFrom is the number of bytes up to which callBytes is enough.
	reserveFrom = callBytes
)

// reserve reserves the first memory of a call, in the account of its caller, who is known by its identity or, without
// one, by its host.
func (in *call) reserve(ctx context.Context, b *budget.Budget, host string) (err error) {
	name := in.admission.Caller.Name
	if name == "" {
		name = host
	}
	in.memory, err = b.Reserve(ctx, budget.Caller(name), callBytes)
	return err
}

// heavy does what takes long for a large request, and has a turn for it.
func heavy(ctx context.Context, do func() error) error {
	in := callFrom(ctx)
	if in == nil || in.Received <= budget.Step {
		return do()
	}
	if err := in.work.Step(); err != nil {
		return beyond(err)
	}
	defer in.work.End()
	return do()
}

// chargeExtension makes an extension answerable for the memory of each call to it, as long as the call lasts. An
// extension that has its share has no more calls until others have ended: the call fails as Overloaded, which no
// failure policy hides. The memory of the answer belongs to the caller afterwards.
func chargeExtension(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		in := callFrom(ctx)
		if in == nil || in.memory == nil {
			return next(ctx, c)
		}
		charge, err := in.memory.Charge(budget.Extension(c.Handler.Registration.Name))
		if err != nil {
			return extension.Result{}, err
		}
		answered := false
		defer func() { charge.End(answered) }() // of a call that panics, too
		c.Memory = charge
		result, err := next(ctx, c)
		answered = err == nil
		return result, err
	}
}
