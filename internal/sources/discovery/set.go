// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// set has the objects of one kind of a source, and the verdict on each. C is what an object is compiled to, and S what
// the status shows of it.
//
// Listed is safe for concurrent use. The other methods belong to one goroutine.
type set[C, S any] struct {
	kind[C, S]
	registry Registry
	objects  map[string]*C     // by name, in effect
	refused  map[string]string // messages, by name
	reported *reports
	listed   atomic.Pointer[listing[S]]
}

// kind is what tells the kinds of objects apart.
type kind[C, S any] struct {
	name, word string // such as HookRule, and what the log calls one
	most       int    // that are listed
	// judge returns the verdicts on objects, by name. They change when handlers, ExtensionConfigs and policies come and go.
	judge func(in *registry.Snapshot, objects map[string]*C) map[string]extensionconfig.Verdict
	// show returns what the status shows of an object, which is nil if none of its versions was valid.
	show func(in *registry.Snapshot, name string, object *C, verdict extensionconfig.Verdict) S
	// content returns what is another value for an object that says something else.
	content func(*C) any
	says    func(extensionconfig.Verdict) (slog.Level, string)
}

// listing is what the status shows of the objects.
type listing[S any] struct {
	shown  []S
	missed int
}

// init makes s the set of a kind, without objects.
func (s *set[C, S]) init(k kind[C, S], r Registry, logger *slog.Logger) {
	s.kind, s.registry = k, r
	s.reported = newReports(k.word, strings.ToLower(k.name[:1])+k.name[1:], logger)
	s.listed.Store(&listing[S]{})
}

// each returns a judge of one object after the other.
func each[C any](judge func(in *registry.Snapshot, name string, object *C) extensionconfig.Verdict) func(
	*registry.Snapshot, map[string]*C,
) map[string]extensionconfig.Verdict {
	return func(in *registry.Snapshot, objects map[string]*C) map[string]extensionconfig.Verdict {
		verdicts := make(map[string]extensionconfig.Verdict, len(objects))
		for name, object := range objects {
			verdicts[name] = judge(in, name, object)
		}
		return verdicts
	}
}

// Verdicts returns the verdict on each object, by name. It changes when what others have registered does.
func (s *set[C, S]) Verdicts() map[string]extensionconfig.Verdict {
	verdicts := s.judge(s.registry.Snapshot(), s.objects)
	for name, message := range s.refused {
		verdicts[name] = extensionconfig.Verdict{Reason: v1alpha1.InvalidReason, Message: message}
	}
	return verdicts
}

// Report logs the new verdicts, and keeps all of them for Listed. at returns the location of an object, and may be nil.
func (s *set[C, S]) Report(verdicts map[string]extensionconfig.Verdict, at func(name string) string) {
	names, snapshot := slices.Sorted(maps.Keys(verdicts)), s.registry.Snapshot()
	l := &listing[S]{missed: max(len(names)-s.most, 0)}
	for i, name := range names {
		verdict, object := verdicts[name], s.objects[name]
		if i < len(names)-l.missed {
			l.shown = append(l.shown, s.show(snapshot, name, object, verdict))
		}
		if object == nil {
			continue // the source has reported its mistake
		}
		level, says := s.says(verdict)
		s.reported.log(level, name, report{s.content(object), verdict}, says, at)
	}
	s.reported.keep(func(name string) bool { _, ok := verdicts[name]; return ok })
	s.listed.Store(l)
}

// Listed returns what was reported last of each object, by name, and how many more there are than a status lists.
// Nothing of it may be changed.
func (s *set[C, S]) Listed() (shown []S, missed int) {
	l := s.listed.Load()
	return l.shown, l.missed
}

// saysReady says what the log does of a verdict on the condition Ready.
func saysReady(v extensionconfig.Verdict) (slog.Level, string) {
	switch {
	case v.Reason == v1alpha1.SeveralOfferedReason:
		return slog.LevelWarn, "is offered beside others"
	case !v.Ready():
		return slog.LevelWarn, "is not ready"
	}
	return slog.LevelInfo, "is ready"
}
