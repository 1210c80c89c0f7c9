// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"

	"github.com/hookgate/hookgate/hook"
)

// Reservation is the memory of one call.
type Reservation struct {
	budget  *Budget
	account Account
	held    int64 // under the budget's lock
	heavy   bool  // it has had so much that work with it takes turns
	ended   bool
}

// Grow reserves more memory for the call. It waits as Reserve does if the call has hardly any yet, and otherwise
// returns an error at once.
func (r *Reservation) Grow(ctx context.Context, bytes int64) error {
	if r == nil {
		return nil
	}
	b := r.budget
	b.mu.Lock()
	if err := b.holds(r.held + bytes); err != nil {
		b.mu.Unlock()
		return err
	}
	if r.held <= littleHeld && !r.ended {
		b.mu.Unlock()
		more, err := b.Reserve(ctx, r.account, bytes)
		if err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if r.ended {
			b.give(r.account, more.held)
			return ended()
		}
		r.hold(more.held)
		return nil
	}
	defer b.mu.Unlock()
	if r.ended {
		return ended()
	}
	if why := b.grows(r.account, r.held, bytes); why != nothing {
		return b.refuse(why)
	}
	b.take(r.account, bytes)
	r.hold(bytes)
	return nil
}

// hold notes that the call has more memory.
func (r *Reservation) hold(bytes int64) {
	r.held += bytes
	r.heavy = r.heavy || r.held > 4*Step
}

// ended returns the error of a call that has ended, and whose memory was released.
func ended() error { return hook.Errorf(hook.Canceled, "the call has ended") }

// Shrink gives some of the memory back.
func (r *Reservation) Shrink(bytes int64) {
	if r == nil || bytes == 0 {
		return
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	if !r.ended {
		r.held -= bytes
		r.budget.give(r.account, bytes)
	}
}

// ShrinkTo gives back all but so many bytes.
func (r *Reservation) ShrinkTo(bytes int64) {
	if r == nil {
		return
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	if left := r.held - bytes; left > 0 && !r.ended {
		r.held = bytes
		r.budget.give(r.account, left)
	}
}

// Within returns Grow for the calls of a context, or nil if nothing is bounded.
func (r *Reservation) Within(ctx context.Context) func(bytes int64) error {
	if r == nil {
		return nil
	}
	return func(bytes int64) error { return r.Grow(ctx, bytes) }
}

// Release gives all of it back. Only the first call has an effect.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	r.budget.mu.Lock()
	defer r.budget.mu.Unlock()
	if !r.ended {
		r.ended = true
		r.budget.give(r.account, r.held)
		r.held = 0
		if !r.heavy {
			r.budget.scheduler.ended()
		}
	}
}

// Charge is the part of a call's memory that an extension is answerable for as long as the call to it lasts: what the
// request keeps while the extension works, and what the answer takes.
type Charge struct {
	call    *Reservation
	account Account
	parked  int64 // of the request: part of call.held
	grown   int64 // of the answer, under the budget's lock
	ended   bool
}

// Charge begins a call to an extension, which keeps the request until it ends. If the extension's share
// is used up, the call is refused at once: one that waited would keep its request.
func (r *Reservation) Charge(who Account) (*Charge, error) {
	if r == nil {
		return nil, nil
	}
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	parked := r.held
	if why := b.share(who, parked); why != nothing {
		return nil, b.refuse(why)
	}
	b.accountOf(who).used += parked
	return &Charge{call: r, account: who, parked: parked}, nil
}

// Grow reserves memory for the call to the extension, or returns an error at once.
func (c *Charge) Grow(bytes int64) error {
	if c == nil {
		return nil
	}
	b := c.call.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if why := b.grows(c.account, c.parked+c.grown, bytes); why != nothing {
		return b.refuse(why)
	}
	b.take(c.account, bytes)
	c.grown += bytes
	return nil
}

// Reserve returns Grow, or nil if nothing is bounded.
func (c *Charge) Reserve() func(bytes int64) error {
	if c == nil {
		return nil
	}
	return c.Grow
}

// End ends the call to the extension. What the answer takes belongs to the caller from then on if keep is set, and is
// given back otherwise. Only the first call has an effect.
func (c *Charge) End(keep bool) {
	if c == nil {
		return
	}
	b := c.call.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	a := b.accountOf(c.account)
	a.used -= c.parked
	if keep && !c.call.ended {
		a.used -= c.grown
		b.accountOf(c.call.account).used += c.grown
		c.call.held += c.grown
		b.drop(c.account, a)
		b.grant()
		return
	}
	b.give(c.account, c.grown)
}
