// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// drainQuiet is how long the connections of a front stay open after its last call has ended and its last byte was
// written. A caller that reads an answer slowly keeps its connection; idle ones, and streams that are no calls, do not.
const drainQuiet = limits.DrainQuiet

// drainingFront is what drain needs of a front.
type drainingFront struct {
	protocol string
	calls    *inFlight
	listener *Listener
	// graceful closes the front's connections as they become idle, and returns when none is left or ctx is done.
	graceful func(ctx context.Context)
	// cut closes all connections at once, so that graceful returns.
	cut func()
}

// drain lets the calls in flight of a front finish, until ctx is done, and then closes what is left: connections that
// are idle or have sent nothing yet, and streams of health checks and reflection. It returns an error if it broke off a
// call.
func (f drainingFront) drain(ctx context.Context, timeout time.Duration) error {
	gracefully, stop := context.WithCancel(ctx)
	defer stop()
	closed := make(chan struct{})
	go func() {
		f.graceful(gracefully)
		close(closed)
	}()
	if f.calls.wait(ctx) {
		f.listener.awaitQuiet(ctx, closed)
	}
	left := f.calls.count()
	stop()
	f.cut()
	<-closed
	if left > 0 {
		return fmt.Errorf("drain %s: calls were still in flight after %s", f.protocol, timeout)
	}
	return nil
}

// inFlight counts the calls in flight of a front. It is safe for concurrent use.
type inFlight struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when no call is in flight; nil unless something waits for that
}

func (f *inFlight) begin() {
	f.mu.Lock()
	f.n++
	f.mu.Unlock()
}

func (f *inFlight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n--
	if f.n == 0 && f.none != nil {
		close(f.none)
		f.none = nil
	}
}

func (f *inFlight) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// wait waits until no call is in flight, and reports whether that was so before ctx was done.
func (f *inFlight) wait(ctx context.Context) bool {
	for {
		f.mu.Lock()
		if f.n == 0 {
			f.mu.Unlock()
			return true
		}
		if f.none == nil {
			f.none = make(chan struct{})
		}
		none := f.none
		f.mu.Unlock()
		select {
		case <-none:
		case <-ctx.Done():
			return false
		}
	}
}
