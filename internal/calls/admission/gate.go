// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission bounds how many calls to an extension are in flight and how many wait for that, so that an
// extension that is slow holds neither all memory nor all goroutines of the gateway.
package admission

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// ErrFull is returned to a call for which there is no room to wait.
var ErrFull = errors.New("the queue of waiting calls is full")

// Limits are the limits of a Gate. They must not change.
type Limits struct {
	MaxInFlight int // at least 1
	MaxWaiting  int // 0 means that no call waits
}

// Default returns the limits of an extension without a policy.
func Default() Limits {
	return Limits{MaxInFlight: limits.DefaultInFlight, MaxWaiting: limits.DefaultWaiting}
}

// Status describes a Gate.
type Status struct {
	InFlight, Waiting int
	// Refused counts the calls that got ErrFull.
	Refused uint64
}

// Gate admits the calls to one extension, in the order in which they come. Its zero value has no calls. It is safe for
// concurrent use.
//
// Each method takes the limits, because they may change while calls are in flight. A weighted semaphore has a fixed
// size and a queue of any length.
type Gate struct {
	mu       sync.Mutex
	inFlight int
	waiting  list.List // of *turn
	refused  uint64
}

// turn is a call that waits.
type turn struct {
	handler string
	err     chan error // with room for the one value that the call waits for
}

// Enter admits a call to a handler, which the caller must end with Leave. It waits until there is room, and reports
// whether it did. With an error, the call is not admitted: the error is ErrFull, that of Dismiss, or that of ctx.
func (g *Gate) Enter(ctx context.Context, l *Limits, handler string) (waited bool, err error) {
	g.mu.Lock()
	g.admit(l)
	if g.inFlight < l.MaxInFlight {
		g.inFlight++
		g.mu.Unlock()
		return false, nil
	}
	if g.waiting.Len() >= l.MaxWaiting {
		g.refused++
		g.mu.Unlock()
		return false, ErrFull
	}
	turn := &turn{handler: handler, err: make(chan error, 1)}
	place := g.waiting.PushBack(turn)
	g.mu.Unlock()

	select {
	case err := <-turn.err:
		return true, err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case err := <-turn.err: // at the same moment; its place is taken off the list
		if err == nil {
			g.inFlight--
			g.admit(l)
		}
	default:
		g.waiting.Remove(place)
	}
	return true, ctx.Err()
}

// Leave ends a call that was admitted.
func (g *Gate) Leave(l *Limits) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inFlight--
	g.admit(l)
}

// Dismiss refuses the calls to a handler that wait, those to all handlers if it is empty: Enter returns err to them.
func (g *Gate) Dismiss(handler string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for place := g.waiting.Front(); place != nil; {
		next := place.Next()
		if t, _ := place.Value.(*turn); handler == "" || t.handler == handler {
			g.answer(place, err)
		}
		place = next
	}
}

// Status returns the counts of calls now.
func (g *Gate) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Status{InFlight: g.inFlight, Waiting: g.waiting.Len(), Refused: g.refused}
}

// admit admits those that wait longest, as far as there is room.
func (g *Gate) admit(l *Limits) {
	for place := g.waiting.Front(); place != nil && g.inFlight < l.MaxInFlight; place = g.waiting.Front() {
		g.inFlight++
		g.answer(place, nil)
	}
}

func (g *Gate) answer(place *list.Element, err error) {
	if t, ok := g.waiting.Remove(place).(*turn); ok {
		t.err <- err
	}
}
