// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"sync"

	"golang.org/x/time/rate"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/notify"
)

// pendingEvents has the last thing to say about each of at most so many things, that no event was written about yet.
// Callers ask again and again, so that what there is no room for comes back.
type pendingEvents[K comparable, V any] struct {
	most    int
	mu      sync.Mutex
	pending map[K]V
	added   *notify.Signal
}

func newPendingEvents[K comparable, V any](most int) *pendingEvents[K, V] {
	return &pendingEvents[K, V]{most: most, pending: map[K]V{}, added: notify.NewSignal()}
}

// add does not block.
func (p *pendingEvents[K, V]) add(about K, latest V) {
	p.mu.Lock()
	if _, known := p.pending[about]; known || len(p.pending) < p.most {
		p.pending[about] = latest
	}
	p.mu.Unlock()
	p.added.Notify()
}

// take returns one thing, if there is any.
func (p *pendingEvents[K, V]) take() (about K, latest V, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for about, latest = range p.pending {
		delete(p.pending, about)
		return about, latest, true
	}
	return about, latest, false
}

// each calls write for one thing after the other, at most limits.BlockedEventsPerSecond, until ctx is done.
func (p *pendingEvents[K, V]) each(ctx context.Context, write func(about K, latest V)) {
	pace := rate.NewLimiter(limits.BlockedEventsPerSecond, 1)
	for {
		about, latest, ok := p.take()
		if !ok {
			select {
			case <-p.added.C():
				continue
			case <-ctx.Done():
				return
			}
		}
		if pace.Wait(ctx) != nil {
			return
		}
		write(about, latest)
	}
}
