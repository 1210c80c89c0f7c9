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
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// LocalSet applies the objects of a kind without servers, such as HookRules, to the registry, and decides the condition
// Ready of each.
//
// Listed is safe for concurrent use. The other methods belong to one goroutine.
type LocalSet struct {
	kind     string
	registry Registry
	hooks    *catalog.Catalog
	locals   map[string]*registry.Registration // by name
	refused  map[string]string                 // messages, by name
	reported *reports
	listed   atomic.Pointer[localListing]
}

// localListing is what the status shows of the objects.
type localListing struct {
	locals []status.Local
	missed int
}

// NewLocalSet returns a LocalSet without objects. kind is their kind, such as HookRule, and word what the log calls
// one.
func NewLocalSet(kind, word string, r Registry, hooks *catalog.Catalog, logger *slog.Logger) *LocalSet {
	attribute := strings.ToLower(kind[:1]) + kind[1:]
	s := &LocalSet{kind: kind, registry: r, hooks: hooks, reported: newReports(word, attribute, logger)}
	s.listed.Store(&localListing{})
	return s
}

// Set replaces the registrations in the registry. refused are the messages on objects that are not valid, by name; regs
// may have earlier versions of them, which stay in effect, or what stands for them while they are closed.
func (s *LocalSet) Set(regs []registry.Registration, refused map[string]string) {
	s.locals, s.refused = make(map[string]*registry.Registration, len(regs)), maps.Clone(refused)
	for i, err := range s.registry.SetLocal(s.kind, regs) {
		name := regs[i].Name
		if err == nil {
			s.locals[name] = &regs[i]
			continue
		}
		if s.refused == nil {
			s.refused = map[string]string{}
		}
		s.refused[name] = err.Error()
	}
}

// Verdicts returns the verdict on each object, by name. It changes when ExtensionConfigs and policies come and go.
func (s *LocalSet) Verdicts() map[string]extensionconfig.Verdict {
	snapshot := s.registry.Snapshot()
	verdicts := make(map[string]extensionconfig.Verdict, len(s.locals)+len(s.refused))
	for name, reg := range s.locals {
		verdicts[name] = extensionconfig.JudgeLocal(snapshot, reg, s.hooks)
	}
	for name, message := range s.refused {
		verdicts[name] = extensionconfig.Verdict{Reason: v1alpha1.InvalidReason, Message: message}
	}
	return verdicts
}

// Report logs the new verdicts, and keeps all of them for Listed. at returns the location of an object, and may be nil.
func (s *LocalSet) Report(verdicts map[string]extensionconfig.Verdict, at func(name string) string) {
	names := slices.Sorted(maps.Keys(verdicts))
	l := &localListing{missed: max(len(names)-limits.StatusLocals, 0)}
	for i, name := range names {
		verdict, reg := verdicts[name], s.locals[name]
		if i < len(names)-l.missed {
			shown := status.Local{
				Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
				Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
			}
			if reg != nil {
				shown.Hook = reg.Handlers[0].Hook.Hook
			}
			l.locals = append(l.locals, shown)
		}
		if reg == nil {
			continue // the source has reported its mistake
		}
		s.reported.logReady(name, report{reg.Local, verdict}, at)
	}
	s.reported.keep(func(name string) bool { _, ok := verdicts[name]; return ok })
	s.listed.Store(l)
}

// Listed returns what was reported last of each object, by name, and how many more there are than a status lists.
// Nothing of it may be changed.
func (s *LocalSet) Listed() (locals []status.Local, missed int) {
	l := s.listed.Load()
	return l.locals, l.missed
}
