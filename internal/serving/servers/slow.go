// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/budget"
)

// slowAfter is how long a message over gRPC may take to arrive until its memory is reserved. Almost all are there at
// once, with the header of their stream.
const slowAfter = limits.UnsizedWait

// slowPatience is how long such a message waits for its memory. It keeps arriving meanwhile, unlike the body of a REST
// request, so that streams that waited as long as calls do would take the memory of the whole process.
const slowPatience = 10 * time.Millisecond

// SlowMessage reserves memory for a message over gRPC that does not arrive at once. How large it is shows only when it
// is there, so that it counts as one of the largest until then. A stream for which there is no memory ends as one whose
// message did not come in time: gRPC leaves no other way to end it while it is being received. Without it, the 60
// streams that stall in the suite of faults would hold 18 MiB each that nothing has reserved.
type SlowMessage struct {
	memory *budget.Reservation
	timer  *time.Timer
	over   atomic.Bool // the message has arrived, or will not
	cancel atomic.Pointer[context.CancelFunc]
	done   chan struct{}
	held   int64 // before done is closed, of the timer
}

// WatchMessage begins to watch the stream with ctx, whose message is about to be received. The caller calls End when it
// has arrived, or will not.
func WatchMessage(ctx context.Context, memory *budget.Reservation) *SlowMessage {
	s := &SlowMessage{memory: memory, done: make(chan struct{})}
	s.timer = time.AfterFunc(slowAfter, func() { s.reserve(ctx) })
	return s
}

func (s *SlowMessage) reserve(ctx context.Context) {
	defer close(s.done)
	waiting, cancel := context.WithTimeout(ctx, 2*slowPatience) // Grow waits for half of it
	defer cancel()
	s.cancel.Store(&cancel)
	if s.over.Load() {
		return
	}
	switch err := s.memory.Grow(waiting, limits.BodyBytes); {
	case err == nil:
		s.held = limits.BodyBytes
	case !s.over.Load() && ctx.Err() == nil:
		giveUp(ctx)
	}
}

// End gives back what was reserved: what the message really takes is reserved next.
func (s *SlowMessage) End() {
	if s.timer.Stop() {
		return
	}
	s.over.Store(true)
	if cancel := s.cancel.Load(); cancel != nil {
		(*cancel)()
	}
	<-s.done
	s.memory.Shrink(s.held)
}
