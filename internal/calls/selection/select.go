// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// Named returns the handler that the request names, or an error if it may not answer.
func Named(ctx context.Context, s *registry.Snapshot, r Request, m *Matcher) (Target, error) {
	// A chain precedes a handler that has its name as its label.
	c, isChain := s.Chain(r.Handler)
	if isChain && c.Hook == r.Hook.GroupHook() && s.Taken(c) == "" {
		return chained(ctx, s, c, m)
	}
	e, ok := s.Handler(r.Handler)
	if !ok && r.Hook.Singleton() {
		if e, ok = s.AnyHandler(strings.ToLower(r.Handler), r.Hook.Group); !ok {
			if awaited := s.AwaitedConfig(r.Handler); awaited != "" {
				return Target{}, notKnown(r.Handler, awaited)
			}
			return Target{}, hook.Errorf(hook.UnknownHandler, "no handler of the group %s is named %q or belongs to "+
				"ExtensionConfig %[2]q", r.Hook.Group, r.Handler)
		}
	}
	if !ok {
		if isChain && c.Hook == r.Hook.GroupHook() {
			return chained(ctx, s, c, m)
		}
		if of := s.ClosedName(r.Handler); of != nil {
			return Target{}, of.Error()
		}
		if isChain {
			return Target{}, hook.Errorf(hook.UnknownHandler, "%s serves the hook %s, not %s",
				c, c.Hook.Hook, r.Hook.Hook)
		}
		return Target{}, noHandler(s, r)
	}
	if served := e.Handler.Hook.GroupHook(); served != r.Hook.GroupHook() &&
		(!r.Hook.Singleton() || served.Group != r.Hook.Group) {
		return Target{}, hook.Errorf(hook.UnknownHandler, "handler %q serves the hook %s, not %s",
			e.Name, e.Handler.Hook.Hook, r.Hook.Hook)
	}
	if r.Hook.Singleton() {
		// A discovery is about no object that a policy could select, and a call to the extension, not to the handler that
		// led to it.
		if v := e.Variants; v != nil {
			e = cmp.Or(v.StableEntry, v.CandidateEntry)
		}
		whole := *e
		whole.Name, whole.Label = e.Registration.Name, e.Registration.Name
		return Target{Entry: &whole}, nil
	}
	if of := s.Closed(e, true); of != nil {
		return Target{}, of.Error()
	}
	answers, of, err := m.Member(ctx, e)
	if err != nil {
		return Target{}, err
	}
	if answers == nil {
		return Target{}, NoMember(s, e, of)
	}
	e = answers
	if of := s.Closed(e, true); of != nil {
		return Target{}, of.Error()
	}
	switch v := m.Judge(ctx, e); v.By {
	case 0:
		return Target{Entry: e, PolicyError: v.PolicyError, Member: of}, nil
	case ByNamespace, ByUnknownNamespace:
		return Target{}, hook.Errorf(hook.UnknownHandler,
			"handler %q is not for namespace %q: the namespaceSelector of %s does not match",
			e.Name, text.Cut(text.Join(m.namespaces, ", ", MaxNames), limits.QuotedBytes), e.Registration.Describe())
	default:
		return Target{}, hook.Errorf(hook.UnknownHandler,
			"handler %q is not for this request: %s does not match", e.Name, v.Policy)
	}
}

// notKnown returns the error of a request that names a handler which may come.
func notKnown(handler, awaited string) error {
	return hook.Errorf(hook.NotReady, "handler %q is not known yet: %s", handler, awaited)
}

// noHandler returns the error of a request that names a handler which is not served. It lists the offered names of
// handlers, such as v--acme, unless the request has a registered name, which has a dot.
func noHandler(s *registry.Snapshot, r Request) error {
	if u, ok := s.UndiscoveredOf(r.Handler); ok && u.Mistake != "" {
		return mistaken(u)
	}
	if awaited := s.Awaited(r.Handler, r.Hook.GroupHook()); awaited != "" {
		return notKnown(r.Handler, awaited)
	}
	if h, p, ok := s.WithheldAs(r.Handler); ok {
		return hook.Errorf(hook.UnknownHandler, "handler %q is not served: spec.hooks of %s does not list the hook "+
			"%s", r.Handler, p, h.Hook.Hook)
	}
	chains, _ := s.StandsFor(r.Hook.GroupHook())
	offered := !r.Hook.Mergeable && !strings.Contains(r.Handler, ".")
	return hook.Errorf(hook.UnknownHandler, "no handler %q: the handlers of %s are %s",
		r.Handler, r.Hook.Hook, names(s, s.Handlers(r.Hook.GroupHook()), chains, offered))
}

// Matching returns the handlers of the hook that the request is for, by name: both their namespaceSelector and their
// policy match, or their policy could not be evaluated. A chain stands for its steps. matching returns an error if
// there may be more handlers than are known: an answer without these would approve on behalf of handlers that
// were never called. Hooks that one handler answers need it only if none is known.
func Matching(ctx context.Context, s *registry.Snapshot, r Request, m *Matcher) ([]Target, error) {
	if err := m.closed(s, r.Hook); err != nil {
		return nil, err
	}
	all := s.HandlersFor(r.Hook.GroupHook(), func() labels.Set {
		of, _ := m.objectLabels() // its error is one of each handler whose selector needs them
		return of
	})
	targets := make([]Target, 0, len(all))
	chains, steps := s.StandsFor(r.Hook.GroupHook())
	for _, c := range chains {
		t, err := chained(ctx, s, c, m)
		if err != nil {
			return nil, err
		}
		if len(t.Steps) > 0 {
			targets = append(targets, t)
		}
	}
	var unsure error
	for _, e := range all {
		if steps[e.Name] {
			continue
		}
		e, of, err := m.Member(ctx, e)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		v := m.Judge(ctx, e)
		if closed := s.Closed(e, false); closed != nil && v.By != ByNamespace {
			return nil, closed.Error() // what else selects requests may be what is mistaken
		}
		switch {
		case !v.Excluded():
			targets = append(targets, Target{Entry: e, PolicyError: v.PolicyError, Member: of})
		case v.By == ByUnknownNamespace && unsure == nil:
			unsure = unknownNamespace(v.namespace, e.Registration.Describe())
		}
	}
	if len(chains) > 0 {
		slices.SortFunc(targets, func(a, b Target) int { return strings.Compare(a.Name(), b.Name()) })
	}
	if !r.Hook.Mergeable && len(targets) > 0 {
		return targets, nil
	}
	if unsure == nil {
		unsure = unasked(ctx, s, r, m)
	}
	return targets, unsure
}

// closed returns an error if a mistaken object closes calls to all handlers of a hook.
func (m *Matcher) closed(s *registry.Snapshot, h *catalog.Hook) error {
	for _, c := range s.Closures() {
		if c.Closes(h.GroupHook()) && m.judgeNamespaces(c.NamespaceSelector).By != ByNamespace {
			return c.Error()
		}
	}
	return nil
}

// unasked returns an error if ExtensionConfigs whose handlers are not known may have one that the request is for, and
// calls have to wait for them.
func unasked(ctx context.Context, s *registry.Snapshot, r Request, m *Matcher) error {
	awaited, err := m.unregistered(ctx, s)
	if err != nil {
		return err
	}
	if err := m.unoffered(ctx, s, r.Hook); err != nil {
		return err
	}
	for _, u := range s.Undiscovered() {
		if no, err := m.NotCalled(ctx, s, u.Name); err != nil || no {
			if err != nil {
				return err
			}
			continue
		}
		if !m.Awaits(ctx, s, u, r.Hook).Excluded() {
			if u.Mistake != "" {
				return mistaken(u)
			}
			awaited = append(awaited, u.String())
		}
	}
	if len(awaited) == 0 {
		return nil
	}
	return notDiscovered(awaited)
}

// Awaits decides whether calls of the hook have to wait for an ExtensionConfig whose handlers are not known.
func (m *Matcher) Awaits(ctx context.Context, s *registry.Snapshot, u *registry.Undiscovered, h *catalog.Hook) Verdict {
	policies := s.Policies(u.Name)
	if u.Effect(policies.All) == hook.Ignore {
		return Verdict{By: ByUndiscovered}
	}
	if !policies.All.Allows(h.Hook) {
		return Verdict{By: ByHooks, Policy: policies.All}
	}
	if v := m.judgeNamespaces(u.NamespaceSelector); v.By == ByNamespace {
		return v
	}
	// A handler with a policy of its own may be called where those without are not.
	if len(policies.Handlers) > 0 {
		return Verdict{}
	}
	return m.judgePolicy(ctx, policies.All)
}

// mistaken returns the error of a call that an ExtensionConfig with a mistake may have a handler for.
func mistaken(u *registry.Undiscovered) error {
	return hook.Errorf(hook.NotReady, "%s has a mistake; until you correct or delete it, or set "+
		"onUndiscovered: Ignore in its ExtensionPolicy, the gateway refuses every call that the extension "+
		"may have a handler for: %s", u, u.Mistake)
}

func notDiscovered(awaited []string) error {
	return hook.Errorf(hook.NotReady, "the handlers of %s are not known yet: \"hookgate get extensions\" says why; "+
		"fix or delete each ExtensionConfig, or set onUndiscovered: Ignore in its ExtensionPolicy",
		text.Join(awaited, ", ", MaxNames))
}

func unknownNamespace(namespace, registration string) error {
	return hook.Errorf(hook.NotReady, "the namespaceSelector of %s depends on the labels of namespace %q, which "+
		"are not known: try again, or add the Namespace to the directory of manifests",
		registration, text.Cut(namespace, limits.QuotedBytes))
}

// WantOne returns an error unless there is just one target.
func WantOne(h *catalog.Hook, targets []Target) error {
	if len(targets) == 0 {
		return hook.Errorf(hook.UnknownHandler, "no handler of %s matches", h.Hook)
	}
	all := make([]string, len(targets))
	for i, t := range targets {
		all[i] = t.Name()
	}
	return hook.Errorf(hook.Ambiguous, "%s needs one handler, but %d match; name one of: %s",
		h.Hook, len(targets), text.Join(all, ", ", MaxNames))
}

// MaxNames is how many handlers an error names.
const MaxNames = 10

// names lists handlers for an error, in their order, chains first: by their offered or their registered names.
func names(s *registry.Snapshot, entries []*registry.Entry, chains []*registry.Chain, offered bool) string {
	if len(entries)+len(chains) == 0 {
		return "none"
	}
	all := make([]string, 0, len(entries)+len(chains))
	for _, c := range chains {
		all = append(all, c.Name)
	}
	for _, e := range entries {
		name := e.Name
		if offered {
			name, _ = s.Offered(e)
		}
		all = append(all, name)
	}
	return text.Join(all, ", ", MaxNames)
}
