// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/contract/steady"
)

const (
	// MaxHolds is the number of holds that are kept, each of up to 2 KiB.
	MaxHolds = limits.HeldClusters
	// idle is how long a hold is kept after the time at which its caller wanted to ask again. Cluster API looks at every
	// Cluster each ten minutes, unless the Cluster is gone.
	idle = 15 * time.Minute
	// cleanEvery is the least time between two looks for holds that have ended, to make room. One takes 0.2 ms, and calls
	// wait meanwhile.
	cleanEvery = time.Second
)

// Wait says which Cluster waits for what.
type Wait struct {
	Namespace, Cluster string
	Hook, Handler      string
	// Object is the part of the Cluster that waits, such as MachineDeployment "md"; empty if the whole does.
	Object string
}

// Hold is a Cluster that cannot go on, because a handler says so or fails.
type Hold struct {
	Wait
	// Kind is empty if the handler has asked the caller to come back after RetryAfter. Otherwise it is the kind of the
	// error, or Failure.
	Kind       string
	Message    string
	RetryAfter time.Duration
	Since      time.Time
	Last       time.Time // when the handler was asked last

	// changing grows with each answer whose message alone has changed, but for progress, and shrinks with each other one.
	// Maskable means that the policy messages: Steady masks what has changed.
	changing int
	Maskable bool
}

// IsUnsteady reports whether the message changes from call to call.
func (h *Hold) IsUnsteady() bool { return h.changing >= limits.UnsteadyMessages*changeWeight }

// changeWeight is how many answers without a change make up for one with a change: a message with a time in seconds is
// the same for two calls within a second.
const changeWeight = 2

// follow compares a hold with the one before it, and reports whether its message has changed although the answer is the
// same otherwise. retryAfterSeconds may differ. The texts of errors are the gateway's, with causes that callers do not
// see.
func (h *Hold) follow(before *Hold) bool {
	if h.Kind != before.Kind || h.Kind != "" && h.Kind != KindFailure {
		return false
	}
	c := steady.Compare(before.Message, h.Message)
	if c < steady.Maskable {
		h.changing, h.Maskable = max(0, before.changing-1), before.Maskable
		return false
	}
	h.Maskable = c == steady.Maskable && (before.changing == 0 || before.Maskable)
	h.changing = min(before.changing+changeWeight, 2*limits.UnsteadyMessages*changeWeight)
	return true
}

// KindFailure is the Kind of a hold that is an answer Failure.
const KindFailure = "Failure"

func (h *Hold) ended(now time.Time) bool { return now.Sub(h.Last) > h.RetryAfter+idle }

// Holds keeps the Clusters that wait. Its zero value has none. It is safe for concurrent use.
type Holds struct {
	mu      sync.RWMutex
	holds   map[Wait]*Hold
	handler map[string]int // holds of each handler
	// unsteady has of each handler the hold whose message was found last to change from call to call.
	unsteady map[string]Wait
	missed   uint64
	cleaned  time.Time

	// letGo and before have when handlers let Clusters go on last. The newer of the two is emptied into the other once it
	// has half of MaxHolds.
	letGo, before map[Wait]time.Time
}

// Of reports whether a Cluster waits for the handler.
func (h *Holds) Of(handler string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.handler[handler] > 0
}

// Hold records that a handler was asked at hold.Last and lets a Cluster wait. Since is kept from the first time. It
// reports whether the message is not as it was, though the answer is otherwise.
func (h *Holds) Hold(hold Hold) (changed bool) {
	hold.Message, hold.Since = redact.Bounded(hold.Message, limits.FailureBytes), hold.Last
	if before, ok := h.last(hold.Wait); ok && !before.ended(hold.Last) {
		changed = hold.follow(&before) // calls do not wait for it
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds == nil {
		h.holds, h.handler, h.unsteady = map[Wait]*Hold{}, map[string]int{}, map[string]Wait{}
	}
	if hold.IsUnsteady() {
		h.unsteady[hold.Handler] = hold.Wait
	}
	if known := h.holds[hold.Wait]; known != nil {
		if !known.ended(hold.Last) {
			hold.Since = known.Since
		}
		*known = hold
		return changed
	}
	if len(h.holds) >= MaxHolds && hold.Last.Sub(h.cleaned) >= cleanEvery {
		h.clean(hold.Last)
	}
	if len(h.holds) >= MaxHolds {
		h.missed++
		return changed
	}
	h.holds[hold.Wait] = &hold
	h.handler[hold.Handler]++
	return changed
}

func (h *Holds) last(w Wait) (Hold, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if known := h.holds[w]; known != nil {
		return *known, true
	}
	return Hold{}, false
}

// Unsteady returns a hold of the handler whose message changes from call to call, if there is one.
func (h *Holds) Unsteady(handler string) (Hold, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	w, ok := h.unsteady[handler]
	if !ok || h.holds[w] == nil {
		return Hold{}, false
	}
	hold := *h.holds[w]
	return hold, hold.IsUnsteady()
}

// Release records that a handler lets a Cluster go on. Another process may have a hold of it that is older.
func (h *Holds) Release(w Wait, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(w)
	if h.letGo == nil || len(h.letGo) >= MaxHolds/2 {
		h.letGo, h.before = map[Wait]time.Time{}, h.letGo
	}
	h.letGo[w] = at
}

// Released returns when handlers let Clusters go on last, of as many as Holds keeps.
func (h *Holds) Released() map[Wait]time.Time {
	h.mu.RLock()
	defer h.mu.RUnlock()
	all := make(map[Wait]time.Time, len(h.before)+len(h.letGo))
	maps.Copy(all, h.before)
	maps.Copy(all, h.letGo)
	return all
}

func (h *Holds) remove(w Wait) {
	if h.holds[w] == nil {
		return
	}
	delete(h.holds, w)
	if h.handler[w.Handler]--; h.handler[w.Handler] == 0 {
		delete(h.handler, w.Handler)
		delete(h.unsteady, w.Handler)
	}
}

func (h *Holds) clean(now time.Time) {
	h.cleaned = now
	for w, hold := range h.holds {
		if hold.ended(now) {
			h.remove(w)
		}
	}
}

// List returns the holds at a time, those first that are oldest, and how many there was no room for.
func (h *Holds) List(now time.Time) (holds []Hold, missed uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clean(now)
	for _, hold := range h.holds {
		holds = append(holds, *hold)
	}
	slices.SortFunc(holds, func(a, b Hold) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Namespace, b.Namespace),
			strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Hook, b.Hook), strings.Compare(a.Handler, b.Handler),
			strings.Compare(a.Object, b.Object))
	})
	return holds, h.missed
}

// Held counts the Clusters that wait for a handler.
type Held struct {
	Clusters int
	Since    time.Time // when the first of them began to wait
}

// Held returns what List does, added up for each handler and hook, whose Wait names no Cluster.
func (h *Holds) Held(now time.Time) map[Wait]Held {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clean(now)
	all, counted := map[Wait]Held{}, map[Wait]bool{}
	for _, hold := range h.holds {
		by, cluster := Wait{Hook: hold.Hook, Handler: hold.Handler}, hold.Wait
		cluster.Object = ""
		held := all[by]
		if !counted[cluster] {
			counted[cluster] = true
			held.Clusters++
		}
		if held.Since.IsZero() || hold.Since.Before(held.Since) {
			held.Since = hold.Since
		}
		all[by] = held
	}
	return all
}
