// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bounds bounds the work for a call, by the memory and the turns on processors of the call that a context
// belongs to. Outside of a call, only the context bounds. A Call belongs to the goroutine of the front, except for its
// memory.
package bounds

import (
	"context"
	"errors"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/wire"
)

// MaxMargin is the most that is kept back of a caller's deadline, so that the gateway's answer, which names the
// handler, arrives before the caller gives up.
const MaxMargin = 500 * time.Millisecond

// Call is what a call may use.
type Call interface {
	// Memory returns the memory of the call, which is nil if the gateway has no budget.
	Memory() *budget.Reservation
	// Work returns the turns on processors of the call.
	Work() *budget.Work
	// Large reports whether work on the whole request is done in turns with others.
	Large() bool
}

type key struct{}

// With returns a context of the call c.
func With(ctx context.Context, c Call) context.Context { return context.WithValue(ctx, key{}, c) }

// From returns the call that ctx belongs to, or nil outside of one.
func From(ctx context.Context) Call {
	c, _ := ctx.Value(key{}).(Call)
	return c
}

// Heavy does what takes long for a large request, and has a turn for it.
func Heavy(ctx context.Context, do func() error) error {
	in := From(ctx)
	if in == nil || !in.Large() {
		return do()
	}
	return Heavily(in.Work(), true, do)
}

// Heavily does a piece of work, after it got a turn if the work is heavy, and ends the turn: nothing that waits, such
// as a call to an extension, has one.
func Heavily(work *budget.Work, heavy bool, do func() error) error {
	if heavy {
		if err := work.Step(); err != nil {
			return Refused(err)
		}
	}
	defer work.End()
	return do()
}

// Guard returns the bounds of the work on the objects of a call.
func Guard(ctx context.Context) jsonpatch.Guard {
	g := jsonpatch.Guard{Step: ctx.Err}
	in := From(ctx)
	if in == nil {
		return g
	}
	if in.Large() {
		g.Step = in.Work().Step
	}
	if memory := in.Memory(); memory != nil {
		g.Reserve = memory.Within(ctx)
	}
	return g
}

// Keep returns the function that reserves memory for what outlives the call of ctx.
func Keep(ctx context.Context) func(bytes int64) (release func(), ok bool) {
	var memory *budget.Reservation // which bounds nothing without a front
	if in := From(ctx); in != nil {
		memory = in.Memory()
	}
	return memory.Keep
}

// Refused returns the error of a request that may be right but is too much, or too late; nil for any other error.
func Refused(err error) *hook.Error {
	var refused *hook.Error
	switch {
	case err == nil:
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, codec.ErrTooMany), errors.Is(err, wire.ErrTooMany):
		return hook.Errorf(hook.TooLarge, "request %s", err)
	case errors.Is(err, context.Canceled):
		return hook.Errorf(hook.Canceled, "the caller left while its request was read").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return hook.Errorf(hook.Timeout, "the caller's deadline passed while its request was read").WithCause(err)
	}
	return nil
}

// GaveUp returns the error of a call whose context has ended with err.
func GaveUp(err error) *hook.Error {
	if errors.Is(err, context.Canceled) {
		return hook.Errorf(hook.Canceled, "the caller left before the answer").WithCause(err)
	}
	return hook.Errorf(hook.Timeout, "no answer before the caller's deadline").WithCause(err)
}
