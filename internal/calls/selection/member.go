// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/registry"
)

// Member is the handler of a Rollout's member that a request is for.
type Member struct {
	*registry.Variants
	IsCandidate        bool
	Namespace, Cluster string
	Labels             labels.Set
}

// Member returns the handler that answers in place of one of a Rollout, which is nil if the member that answers has
// none of the name; and e itself, with nothing else, for every other handler.
func (m *Matcher) Member(ctx context.Context, e *registry.Entry) (*registry.Entry, *Member, error) {
	v := e.Variants
	if v == nil {
		return e, nil, nil
	}
	of := &Member{Variants: v}
	var err error
	if of.IsCandidate, err = m.isCandidate(ctx, v.Rollout); err != nil {
		return nil, nil, err
	}
	of.Namespace, of.Cluster = m.cluster()
	if !subject.OfMachine(m.Message) { // whose labels are those of Machines
		of.Labels, _ = m.objectLabels()
	}
	if of.IsCandidate {
		return v.CandidateEntry, of, nil
	}
	return v.StableEntry, of, nil
}

// isCandidate reports whether the candidate of a Rollout answers the request. It asks once, so that one member answers
// for all handlers of a request.
func (m *Matcher) isCandidate(ctx context.Context, of *registry.Rollout) (isCandidate bool, err error) {
	if isCandidate, ok := m.candidates[of]; ok {
		return isCandidate, nil
	}
	namespace, cluster := m.cluster()
	switch {
	case len(namespace)+len(cluster) > limits.NameBytes: // no Cluster has such a name
	case m.Looks:
		isCandidate, err = of.Assignment.Look(ctx, namespace, cluster)
	default:
		isCandidate, err = of.Assignment.Candidate(ctx, namespace, cluster)
	}
	if err != nil {
		return false, err
	}
	if m.candidates == nil {
		m.candidates = map[*registry.Rollout]bool{}
	}
	m.candidates[of] = isCandidate
	return isCandidate, nil
}

// cluster returns the Cluster that the request is about, or nothing.
func (m *Matcher) cluster() (namespace, name string) {
	if m.clusterName == nil {
		namespace, name = subject.Cluster(m.Message)
		m.clusterName = &[2]string{namespace, name}
	}
	return m.clusterName[0], m.clusterName[1]
}

// Answering returns the name of the ExtensionConfig that answers.
func (of *Member) Answering() string {
	if of.IsCandidate {
		return of.Candidate
	}
	return of.Stable
}

// NoMember returns the error of a request that names a handler which the member that answers does not have, as far as
// is known.
func NoMember(s *registry.Snapshot, e *registry.Entry, of *Member) error {
	if _, ok := s.Registration(of.Answering()); !ok {
		return notDiscovered([]string{fmt.Sprintf("ExtensionConfig %q of %s", of.Answering(), of.Rollout)})
	}
	about := "calls about no Cluster"
	if of.Cluster != "" {
		about = fmt.Sprintf("Cluster %q", text.Cut(of.Namespace+"/"+of.Cluster, limits.QuotedBytes))
	}
	return hook.Errorf(hook.UnknownHandler, "no handler %q for %s: in %s, ExtensionConfig %q answers, but does not "+
		"have this handler", e.Name, about, of.Rollout, of.Answering())
}

// NotCalled reports whether an ExtensionConfig is of a Rollout in which another one answers the request.
func (m *Matcher) NotCalled(ctx context.Context, s *registry.Snapshot, extensionConfig string) (bool, error) {
	of, ok := s.MemberOf(extensionConfig)
	if !ok {
		return false, nil
	}
	isCandidate, err := m.isCandidate(ctx, of)
	if isCandidate {
		return extensionConfig != of.Candidate, err
	}
	return extensionConfig != of.Stable, err
}

// unregistered returns the ExtensionConfigs that answer the request as members of Rollouts, and of which nothing is
// known.
func (m *Matcher) unregistered(ctx context.Context, s *registry.Snapshot) (all []string, err error) {
	for _, of := range s.Rollouts() {
		isCandidate, err := m.isCandidate(ctx, of)
		if err != nil {
			return nil, err
		}
		name := of.Stable
		if isCandidate {
			name = of.Candidate
		}
		if first, _ := s.MemberOf(name); first != of || !s.Knows(name) {
			all = append(all, fmt.Sprintf("ExtensionConfig %q of %s", name, of))
		}
	}
	return all, nil
}

// unoffered returns an error if the candidate of a Rollout that answers the request has a handler of the hook that the
// request is for, and that is not called, because the stable member has its name for another hook.
func (m *Matcher) unoffered(ctx context.Context, s *registry.Snapshot, h *catalog.Hook) error {
	for _, of := range s.Rollouts() {
		if isCandidate, err := m.isCandidate(ctx, of); err != nil || !isCandidate {
			if err != nil {
				return err
			}
			continue
		}
		for _, e := range s.HandlersOf(of.Candidate) {
			if e.Handler.Hook.GroupHook() != h.GroupHook() {
				continue
			}
			offered, ok := s.Handler(e.Handler.Name + "." + of.Name)
			if !ok || offered.Variants == nil || offered.Variants.CandidateEntry == e {
				continue // in another Rollout, which unregistered says, or called
			}
			if v := m.Judge(ctx, e); !v.Excluded() || v.By == ByUnknownNamespace {
				return hook.Errorf(hook.NotReady, "handler %q cannot be called: in %s, ExtensionConfig %q also has a handler "+
					"named %q, but for the hook %s; rename one of the two handlers",
					e.Name, of, of.Stable, e.Handler.Name, offered.Handler.Hook.Hook)
			}
		}
	}
	return nil
}
