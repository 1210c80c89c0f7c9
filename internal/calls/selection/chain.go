// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/registry"
)

// chained returns the target of a request for a chain: the steps whose selectors and policies match. It returns an
// error if a step is missing, or if it is not known whether one matches: an answer without it would approve on
// behalf of a step that was never called.
func chained(ctx context.Context, s *registry.Snapshot, c *registry.Chain, m *Matcher) (Target, error) {
	if of := s.ClosedChain(c.Name); of != nil {
		return Target{}, of.Error()
	}
	steps, err := s.StepsOf(c)
	if of, ok := errors.AsType[*hook.Error](err); ok {
		return Target{}, of
	}
	if err != nil {
		return Target{}, hook.Errorf(hook.NotReady, "%s cannot be called: %s", c,
			outcome.Joined(strings.Split(err.Error(), "\n"), "; "))
	}
	t := Target{Chain: c}
	for _, step := range steps {
		e, of, err := m.Member(ctx, step.Entry)
		switch {
		case err != nil:
			return Target{}, err
		case e == nil && step.Optional:
			continue
		case e == nil:
			return Target{}, NoMember(s, step.Entry, of)
		}
		v := m.JudgeStep(ctx, c, e)
		if of := s.Closed(e, false); of != nil && v.By != ByNamespace {
			return Target{}, of.Error()
		}
		switch {
		case !v.Excluded():
			t.Steps = append(t.Steps, Target{
				Entry: e, PolicyError: v.PolicyError, Settings: step.Settings, Allow: step.Allow,
				Stops: step.OnHold == registry.StopOnHold, Member: of,
			})
		case v.By == ByUnknownNamespace:
			return Target{}, unknownNamespace(v.namespace, e.Registration.Name)
		case v.By == ByUnknownCluster:
			return Target{}, v.unknown
		}
	}
	return t, nil
}
