// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/registry"
)

// Item is an object of a source.
type Item struct {
	Name string
	// Object is the object as it is now. It is nil if it cannot be read.
	Object Object
	// Compiled is what is in effect: of the object as it is now, or of an earlier version. It is nil without one.
	Compiled any
	// Mistake is the mistake of the object as it is now, and empty if it is valid.
	Mistake string
	// Closed is what the object closes. It is nil if something is in effect.
	Closed *Closed
}

// Set applies the objects of one kind of a source to the registry, and decides a condition of each. Its methods belong
// to one goroutine.
type Set interface {
	// Use replaces all objects. It returns, in order, the names of the ExtensionConfigs that are called in another way.
	Use(items []Item) (changed []string)
	// Verdicts returns the verdict on each object, by name. It changes when what others have registered does.
	Verdicts() map[string]Verdict
	// Report logs the new verdicts, and keeps all of them for the status. at returns the location of an object, and may be
	// nil.
	Report(verdicts map[string]Verdict, at func(name string) string)
	// List puts what was reported last of each object into g. It is safe for concurrent use.
	List(g *status.Gateway)
}

// In returns what is compiled of the objects in effect, in their order.
func In[C any](items []Item) []C {
	all := make([]C, 0, len(items))
	for i := range items {
		if c, ok := items[i].Compiled.(C); ok {
			all = append(all, c)
		}
	}
	return all
}

// Mistakes returns the mistakes of objects, by name.
func Mistakes(items []Item) map[string]string {
	mistakes := map[string]string{}
	for i := range items {
		if items[i].Mistake != "" {
			mistakes[items[i].Name] = items[i].Mistake
		}
	}
	return mistakes
}

// Judged has the objects of one kind of a source, and the verdict on each. C is what an object is compiled to, and S
// what the status shows of it.
//
// List and Listed are safe for concurrent use. The other methods belong to one goroutine.
type Judged[C, S any] struct {
	as       Judging[C, S]
	registry registry.Snapshots
	objects  map[string]*C     // by name, in effect
	refused  map[string]string // mistakes, by name
	reported *reports
	listed   atomic.Pointer[listing[S]]
}

// Judging is what tells the kinds of Judged objects apart.
type Judging[C, S any] struct {
	Kind, Word string // such as HookRule, and what the log calls one
	Most       int    // that are listed
	In         Member[S]
	// Judge returns the verdicts on objects, by name. They change when handlers, ExtensionConfigs and policies come and
	// go.
	Judge func(in *registry.Snapshot, objects map[string]*C) map[string]Verdict
	// Show returns what the status shows of an object, which is nil if none of its versions was valid.
	Show func(in *registry.Snapshot, name string, object *C, verdict Verdict) S
	// Content returns what is another value for an object that says something else.
	Content func(*C) any
	// Says says what the log does of a verdict.
	Says func(Verdict) (slog.Level, string)
}

// listing is what the status shows of the objects.
type listing[S any] struct {
	shown  []S
	missed int
}

// Init makes s the set of a kind, without objects.
func (s *Judged[C, S]) Init(as Judging[C, S], r registry.Snapshots, logger *slog.Logger) {
	s.as, s.registry = as, r
	s.reported = newReports(as.Word, strings.ToLower(as.Kind[:1])+as.Kind[1:], logger)
	s.listed.Store(&listing[S]{})
}

// Put replaces the objects in effect, and the mistakes of those that have some, by name.
func (s *Judged[C, S]) Put(objects map[string]*C, mistakes map[string]string) {
	s.objects, s.refused = objects, mistakes
}

// Each returns a judge of one object after the other.
func Each[C any](judge func(in *registry.Snapshot, name string, object *C) Verdict) func(
	*registry.Snapshot, map[string]*C,
) map[string]Verdict {
	return func(in *registry.Snapshot, objects map[string]*C) map[string]Verdict {
		verdicts := make(map[string]Verdict, len(objects))
		for name, object := range objects {
			verdicts[name] = judge(in, name, object)
		}
		return verdicts
	}
}

// Verdicts returns the verdict on each object, by name. It changes when what others have registered does.
func (s *Judged[C, S]) Verdicts() map[string]Verdict {
	verdicts := s.as.Judge(s.registry.Snapshot(), s.objects)
	for name, message := range s.refused {
		verdicts[name] = Verdict{Reason: v1alpha1.InvalidReason, Message: message}
	}
	return verdicts
}

// Report logs the new verdicts, and keeps all of them for Listed. at returns the location of an object, and may be nil.
func (s *Judged[C, S]) Report(verdicts map[string]Verdict, at func(name string) string) {
	names, snapshot := slices.Sorted(maps.Keys(verdicts)), s.registry.Snapshot()
	l := &listing[S]{missed: max(len(names)-s.as.Most, 0)}
	for i, name := range names {
		verdict, object := verdicts[name], s.objects[name]
		if i < len(names)-l.missed {
			l.shown = append(l.shown, s.as.Show(snapshot, name, object, verdict))
		}
		if object == nil {
			continue // the source has reported its mistake
		}
		level, says := s.as.Says(verdict)
		s.reported.log(level, name, report{s.as.Content(object), verdict}, says, at)
	}
	s.reported.keep(func(name string) bool { _, ok := verdicts[name]; return ok })
	s.listed.Store(l)
}

// Listed returns what was reported last of each object, by name, and how many more there are than a status lists.
// Nothing of it may be changed.
func (s *Judged[C, S]) Listed() (shown []S, missed int) {
	l := s.listed.Load()
	return l.shown, l.missed
}

// List implements Set.
func (s *Judged[C, S]) List(g *status.Gateway) {
	shown, missed := s.Listed()
	s.as.In.Put(g, shown, missed)
}

// SaysReady says what the log does of a verdict on the condition Ready.
func SaysReady(v Verdict) (slog.Level, string) {
	switch {
	case v.Reason == v1alpha1.SeveralOfferedReason:
		return slog.LevelWarn, "is offered together with other handlers of its hook"
	case !v.Ready():
		return slog.LevelWarn, "is not ready"
	}
	return slog.LevelInfo, "is ready"
}
