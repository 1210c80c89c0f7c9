// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"log/slog"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// LocalSet applies the objects of a kind without servers, such as HookRules, to the registry, and decides the condition
// Ready of each.
//
// Listed is safe for concurrent use. The other methods belong to one goroutine.
type LocalSet struct {
	Judged[registry.Registration, status.InProcess]

	kind     string
	registry LocalRegistry
}

// LocalRegistry is where a LocalSet puts what it has.
type LocalRegistry interface {
	registry.Snapshots
	// SetLocal replaces the registrations of a kind without servers, and returns the error of each that it refuses.
	SetLocal(kind string, regs []registry.Registration) []error
}

var _ Set = (*LocalSet)(nil)

// NewLocalSet returns a LocalSet without objects, of a kind that is shown as ShownLocal has it.
func NewLocalSet(of *Kind, r LocalRegistry, hooks *catalog.Catalog, logger *slog.Logger) *LocalSet {
	s := &LocalSet{kind: of.Name, registry: r}
	s.Init(Judging[registry.Registration, status.InProcess]{
		Kind: of.Name, Word: of.Shown.Singular, Most: limits.StatusLocals, In: of.Shown.In.(Member[status.InProcess]),
		Show: localStatus, Says: SaysReady,
		Judge: Each(func(in *registry.Snapshot, _ string, reg *registry.Registration) Verdict {
			return JudgeLocal(in, reg, hooks)
		}),
		Content: func(reg *registry.Registration) any { return reg.InProcess },
	}, r, logger)
	return s
}

// Use implements Set.
func (s *LocalSet) Use(items []Item) (changed []string) {
	regs := In[registry.Registration](items)
	for i := range items {
		if closed := items[i].Closed; closed != nil && closed.Registration != nil {
			regs = append(regs, *closed.Registration)
		}
	}
	objects, mistakes := make(map[string]*registry.Registration, len(regs)), Mistakes(items)
	for i, err := range s.registry.SetLocal(s.kind, regs) {
		if err != nil {
			mistakes[regs[i].Name] = err.Error()
			continue
		}
		objects[regs[i].Name] = &regs[i]
	}
	s.Put(objects, mistakes)
	return nil
}

// localStatus returns what the status shows of an object.
func localStatus(
	_ *registry.Snapshot, name string, reg *registry.Registration, verdict Verdict,
) status.InProcess {
	shown := status.InProcess{
		Name: name, Ready: verdict.Ready(), Reason: verdict.Reason,
		Message: text.Cut(verdict.Message, limits.PolicyMessageBytes),
	}
	if reg != nil {
		shown.Hook = reg.Handlers[0].Hook.Hook
	}
	return shown
}
