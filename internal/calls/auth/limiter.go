// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"container/list"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// Limits bound what one caller may do: an authenticated caller, or else a remote host. Zero values are no limits.
type Limits struct {
	// Rate is the number of calls per second; a burst may have as many.
	Rate int
	// InFlight is the number of calls that have no answer yet.
	InFlight int
}

// limiter counts the calls of each caller. It tracks a bounded number of callers, and forgets the one that has been
// idle the longest: who has calls in flight is never forgotten.
type limiter struct {
	limits  Limits
	tracked int

	mu      sync.Mutex
	callers map[Caller]*usage
	idle    *list.List // of *usage without calls in flight, the latest first
}

// usage is what a caller does now.
type usage struct {
	caller   Caller
	rate     *rate.Limiter // nil for none
	inFlight int
	idle     *list.Element // nil with calls in flight
}

func newLimiter(l Limits) *limiter {
	return &limiter{limits: l, tracked: limits.TrackedCallers, callers: map[Caller]*usage{}, idle: list.New()}
}

// begin counts a call of a caller, or returns an error of the kind Overloaded. The usage is to be given to end.
func (l *limiter) begin(c Caller) (*usage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.callers[c]
	if u == nil {
		if len(l.callers) >= l.tracked && !l.forget() {
			return nil, tooMuch("the gateway cannot track more callers: try again")
		}
		u = &usage{caller: c}
		if l.limits.Rate > 0 {
			u.rate = rate.NewLimiter(rate.Limit(l.limits.Rate), l.limits.Rate)
		}
		l.callers[c] = u
		u.idle = l.idle.PushFront(u)
	}
	switch {
	case l.limits.InFlight > 0 && u.inFlight >= l.limits.InFlight:
		return nil, tooMuch("the caller has %d calls in flight, the most that one caller may have: try again once some have "+
			"ended", l.limits.InFlight)
	case u.rate != nil && !u.rate.Allow():
		return nil, tooMuch("the caller makes more than %d calls per second, the most that one caller may make: try again "+
			"later", l.limits.Rate)
	}
	u.inFlight++
	if u.idle != nil {
		l.idle.Remove(u.idle)
		u.idle = nil
	}
	return u, nil
}

// end counts the end of a call.
func (l *limiter) end(u *usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.inFlight--; u.inFlight == 0 {
		u.idle = l.idle.PushFront(u)
	}
}

// forget removes the caller that has been idle the longest, and reports whether there is one.
func (l *limiter) forget() bool {
	last := l.idle.Back()
	if last == nil {
		return false
	}
	if u, ok := l.idle.Remove(last).(*usage); ok {
		delete(l.callers, u.caller)
	}
	return true
}

func tooMuch(format string, args ...any) error {
	return hook.Errorf(hook.Overloaded, format, args...).WithRetryAfter(time.Second)
}

// anonymous returns the caller that a remote host stands for. A host has all of its network of IPv6 addresses.
func anonymous(host string) Caller {
	if a, err := netip.ParseAddr(host); err == nil && a.Is6() && !a.Is4In6() {
		if network, err := a.WithZone("").Prefix(64); err == nil {
			host = network.String()
		}
	}
	return Caller{Name: host, Method: None}
}
