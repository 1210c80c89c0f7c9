// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"log/slog"
	"maps"

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
	set[registry.Registration, status.Local]
}

// NewLocalSet returns a LocalSet without objects. name is that of their kind, such as HookRule, and word what the log
// calls one.
func NewLocalSet(name, word string, r Registry, hooks *catalog.Catalog, logger *slog.Logger) *LocalSet {
	s := &LocalSet{}
	s.init(kind[registry.Registration, status.Local]{
		name: name, word: word, most: limits.StatusLocals, show: localStatus, says: saysReady,
		judge: each(func(in *registry.Snapshot, _ string, reg *registry.Registration) extensionconfig.Verdict {
			return extensionconfig.JudgeLocal(in, reg, hooks)
		}),
		content: func(reg *registry.Registration) any { return reg.Local },
	}, r, logger)
	return s
}

// Set replaces the registrations in the registry. refused are the messages on objects that are not valid, by name; regs
// may have earlier versions of them, which stay in effect, or what stands for them while they are closed.
func (s *LocalSet) Set(regs []registry.Registration, refused map[string]string) {
	s.objects, s.refused = make(map[string]*registry.Registration, len(regs)), maps.Clone(refused)
	for i, err := range s.registry.SetLocal(s.name, regs) {
		if err == nil {
			s.objects[regs[i].Name] = &regs[i]
			continue
		}
		if s.refused == nil {
			s.refused = map[string]string{}
		}
		s.refused[regs[i].Name] = err.Error()
	}
}

// localStatus returns what the status shows of an object.
func localStatus(
	_ *registry.Snapshot, name string, reg *registry.Registration, verdict extensionconfig.Verdict,
) status.Local {
	shown := status.Local{
		Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
		Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
	}
	if reg != nil {
		shown.Hook = reg.Handlers[0].Hook.Hook
	}
	return shown
}
