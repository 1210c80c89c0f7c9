// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// handlerSeries removes the series of handlers that are not registered any more: at every scrape, and between scrapes
// if there are many, as an extension may name its handlers differently each time. It is safe for concurrent use.
type handlerSeries struct {
	snapshots registry.Snapshots
	// vectors have the label "handler".
	vectors []interface {
		DeletePartialMatch(labels prometheus.Labels) int
	}

	// calls has the number of calls in flight, an *atomic.Int64, by the handler's name; below 0, the entry is removed.
	calls sync.Map
	known atomic.Int64 // entries of calls

	prune sync.Mutex
	// clean is the snapshot of which all entries of calls were handlers when there were cleanKnown of them, after the last
	// pruning. It is nil if some had to stay.
	clean      *registry.Snapshot
	cleanKnown int64
}

var _ prometheus.Collector = (*handlerSeries)(nil)

// begin protects the series of a handler until end is called with what it returns.
func (s *handlerSeries) begin(handler string) *atomic.Int64 {
	for {
		v, ok := s.calls.Load(handler)
		if !ok {
			if v, ok = s.calls.LoadOrStore(handler, new(atomic.Int64)); !ok {
				s.added()
			}
		}
		if n, _ := v.(*atomic.Int64); n.Add(1) > 0 {
			return n
		}
		// It has just been removed. The next turn adds it again.
	}
}

// end ends what begin has begun.
func (*handlerSeries) end(calls *atomic.Int64) { calls.Add(-1) }

// added counts a new handler.
func (s *handlerSeries) added() {
	const gone = limits.GoneHandlers
	known := int(s.known.Add(1))
	if known <= gone {
		return
	}
	if now := s.snapshots.Snapshot(); known > gone+len(now.All())+len(now.Chains()) {
		s.removeGone()
	}
}

// removeGone removes the series of the handlers that are not registered and have no call in flight. It searches for
// them only if the registry has changed, or handlers were added, since there were none.
func (s *handlerSeries) removeGone() {
	s.prune.Lock()
	defer s.prune.Unlock()
	snapshot, known := s.snapshots.Snapshot(), s.known.Load()
	if s.clean == snapshot && s.cleanKnown == known {
		return
	}
	registered := map[string]bool{}
	for _, e := range snapshot.All() {
		registered[e.Name] = true
	}
	for _, c := range snapshot.Chains() {
		registered[c.Name] = true
	}
	const removed = -1 << 62
	s.clean, s.cleanKnown = snapshot, known
	s.calls.Range(func(key, value any) bool {
		name, _ := key.(string)
		if registered[name] {
			return true
		}
		if calls, _ := value.(*atomic.Int64); !calls.CompareAndSwap(0, removed) {
			s.clean = nil // it is removed once its calls have ended
			return true
		}
		for _, v := range s.vectors {
			v.DeletePartialMatch(prometheus.Labels{"handler": name})
		}
		s.calls.Delete(name)
		s.known.Add(-1)
		s.cleanKnown--
		return true
	})
}

// Describe implements prometheus.Collector. There is nothing to describe: the vectors are collectors themselves.
func (*handlerSeries) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector: it collects nothing, but is called at every scrape.
func (s *handlerSeries) Collect(chan<- prometheus.Metric) { s.removeGone() }
