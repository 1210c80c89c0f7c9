// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Assembly is a registry of objects that were read, without a gateway: what chains would find there. It is immutable.
type Assembly struct {
	*registry.Snapshot

	// assumed are the registered names of the steps that are taken to exist.
	assumed map[string]bool
}

// Assembled is an ExtensionConfig of an Assembly. If Known is false, it may have more handlers, and has those that
// chains have as steps.
type Assembled struct {
	registry.Registration
	Known bool
}

// Assemble returns the Assembly of ExtensionConfigs with their policies, of registrations without a server, which are
// those of HookRules, and of chains. The error of each ExtensionConfig that the registry refuses is by its name. Steps
// of ExtensionConfigs and rules that are not among them are taken to exist.
func Assemble(
	configs []Assembled, locals []registry.Registration, policies map[string]registry.Policies, chains []registry.Chain,
	hooks *catalog.Catalog,
) (*Assembly, map[string]error) {
	a := &Assembly{assumed: map[string]bool{}}
	byKind, isLocal := map[string][]registry.Registration{}, map[string]bool{}
	for i := range locals {
		kind := locals[i].InProcess.Kind()
		byKind[kind], isLocal[locals[i].Name] = append(byKind[kind], locals[i]), true
	}
	byName := make(map[string]*Assembled, len(configs))
	for i := range configs {
		config := configs[i]
		config.Handlers = slices.Clone(config.Handlers)
		byName[config.Name] = &config
	}
	for i := range chains {
		hub, _ := hooks.ByName(chains[i].Hook.Hook)
		for _, step := range chains[i].Steps {
			handler, name, _ := strings.Cut(step.Handler, ".")
			config := byName[name]
			if config == nil && isLocal[name] {
				continue
			}
			if config == nil {
				config = &Assembled{Registration: registry.Registration{
					Name: name, ClientConfig: registry.ClientConfig{URL: "https://" + name},
				}}
				byName[name] = config
			}
			has := func(h registry.Handler) bool { return h.Name == handler }
			if config.Known || hub == nil || slices.ContainsFunc(config.Handlers, has) {
				continue
			}
			a.assumed[step.Handler] = true
			config.Handlers = append(config.Handlers, registry.Handler{
				Name: handler, Hook: hub.GroupVersionHook, Timeout: limits.DefaultTimeout, FailurePolicy: hook.Fail,
			})
		}
	}
	names := slices.Sorted(maps.Keys(byName))
	registrations := make([]registry.Registration, len(names))
	for i, name := range names {
		registrations[i] = byName[name].Registration
	}
	r := registry.New(hooks.Merged()...)
	r.SetAllPolicies(policies)
	refused := map[string]error{}
	for i, err := range r.ApplyAll(registrations) {
		if err != nil {
			refused[names[i]] = err
		}
	}
	for kind, of := range byKind {
		r.SetLocal(kind, of)
	}
	r.SetChains(slices.Clone(chains))
	a.Snapshot = r.Snapshot()
	return a, refused
}

// ChainProblem is something that keeps a chain from being called, with the path of the field that is wrong.
type ChainProblem struct {
	Path string
	Err  error
}

// ChainProblems returns what keeps a chain of the Assembly from being called, as far as that is known.
func (a *Assembly) ChainProblems(c *registry.Chain) []ChainProblem {
	if taken := a.Taken(c); taken != "" {
		return []ChainProblem{{"metadata.name", fmt.Errorf("the name is also %s: rename the chain", taken)}}
	}
	var problems []ChainProblem
	for i := range c.Steps {
		name := c.Steps[i].Handler
		if e, ok := a.Handler(name); ok && a.assumed[name] && e.Handler.Hook.GroupHook() != c.Hook {
			continue // it is not known which hook it is of
		}
		if _, err := a.Step(c, i); err != nil {
			problems = append(problems, ChainProblem{fmt.Sprintf("spec.steps[%d].handler", i), err})
		}
	}
	return problems
}

// Several returns an error that names the handlers of h that are offered, if more are than Cluster API takes. more are
// offered besides.
func (a *Assembly) Several(h *catalog.Hook, more ...string) error {
	if message := kinds.SeveralOffered(a.Snapshot, h, more...); message != "" {
		return errors.New(message)
	}
	return nil
}
