// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
)

// chainOf returns a chain of the hook that the handlers of discoverytest implement.
func chainOf(name string, handlers ...string) registry.Chain {
	c := registry.Chain{Name: name, Hook: discoverytest.Handlers("a")[0].Hook.GroupHook()}
	for _, h := range handlers {
		c.Steps = append(c.Steps, registry.ChainStep{Handler: h})
	}
	return c
}

// The verdict on a chain changes when its handlers come and go, and is logged once each time.
func TestChainSetFollowsHandlers(t *testing.T) {
	w := newPolicyFixture()
	s := handlerchain.NewSet(w.tracking, func() {}, w.logs.Logger())
	report := func() {
		for range 2 {
			s.Report(s.Verdicts(), func(name string) string { return name + ".yaml:1" })
		}
	}
	s.Use(items([]registry.Chain{chainOf("c", "a.acme")}, nil))
	report()
	w.apply(t, "acme", "a")
	report()
	if n := len(w.logs.Lines("level=INFO", "chain is ready", "handlerChain=c", "at=c.yaml:1", "Calls go to 1 handler")); n != 1 {
		t.Errorf("logged %d times that the chain is ready", n)
	}
	w.tracking.RemoveAll([]string{"acme"})
	report()
	if n := len(w.logs.Lines("level=WARN", "chain is not ready", "reason=StepMissing")); n != 2 {
		t.Errorf("logged %d times that the chain is not ready, want once before and once after", n)
	}
	s.Use(nil)
	report()
	if n := len(w.logs.Lines("chain removed", "handlerChain=c")); n != 1 {
		t.Errorf("logged %d times that the chain is removed", n)
	}
	if chains, missed := s.Listed(); len(chains) != 0 || missed != 0 || len(w.registry.Snapshot().Chains()) != 0 {
		t.Errorf("a removed chain is still there: %+v, %d", chains, missed)
	}
}

// A chain that can be called, but that is offered beside others, is a warning of its own.
func TestChainSetWarnsOfSeveral(t *testing.T) {
	w := newPolicyFixture()
	w.apply(t, "acme", "a", "b")
	c := chainOf("c", "a.acme")
	c.OneHandler = true
	s := handlerchain.NewSet(w.tracking, func() {}, w.logs.Logger())
	s.Use(items([]registry.Chain{c}, nil))
	s.Report(s.Verdicts(), nil)
	if lines := w.logs.Lines("level=WARN", "chain is offered together with other handlers of its hook", "reason=SeveralOffered"); len(lines) != 1 {
		t.Errorf("logged %q", w.logs.Lines())
	}
}

// A chain whose object is not valid any more keeps its last valid steps, and says what is wrong.
func TestChainSetKeepsTheLastValidState(t *testing.T) {
	w := newPolicyFixture()
	w.apply(t, "acme", "a")
	s := handlerchain.NewSet(w.tracking, func() {}, w.logs.Logger())
	before := chainOf("c", "a.acme")
	before.Block = true
	s.Use(items([]registry.Chain{before}, map[string]string{"c": "spec.hook: wrong", "new": "spec.steps: none"}))
	verdicts := s.Verdicts()
	want := map[string]kinds.Verdict{"c": {Reason: "Invalid", Message: "spec.hook: wrong"}, "new": {Reason: "Invalid", Message: "spec.steps: none"}}
	if diff := cmp.Diff(want, verdicts); diff != "" {
		t.Errorf("verdicts (-want +got):\n%s", diff)
	}
	s.Report(verdicts, nil)
	listed, _ := s.Listed()
	if diff := cmp.Diff([]status.Chain{
		{
			Name: "c", Hook: before.Hook.Hook, Reason: "Invalid", Message: "spec.hook: wrong", OnPartialCoverage: "Block",
			Steps: []status.ChainStep{{Handler: "a.acme", Registered: true}},
		},
		{Name: "new", Reason: "Invalid", Message: "spec.steps: none"},
	}, listed); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if _, err := w.registry.Snapshot().StepsOf(w.registry.Snapshot().Chains()[0]); err != nil {
		t.Errorf("the last valid chain cannot be called: %v", err)
	}
}

// The status lists so many chains, and cuts their messages.
func TestChainSetListsAreBounded(t *testing.T) {
	w := newPolicyFixture()
	s := handlerchain.NewSet(w.tracking, func() {}, w.logs.Logger())
	refused := map[string]string{}
	for i := range limits.StatusChains + 3 {
		refused[fmt.Sprintf("c%04d", i)] = strings.Repeat("x", limits.PolicyMessageBytes+10)
	}
	s.Use(items([]registry.Chain(nil), refused))
	s.Report(s.Verdicts(), nil)
	chains, missed := s.Listed()
	if len(chains) != limits.StatusChains || missed != 3 || chains[0].Name != "c0000" {
		t.Errorf("%d are listed and %d are not, from %s", len(chains), missed, chains[0].Name)
	}
	if n := len(chains[0].Message); n < limits.PolicyMessageBytes || n > limits.PolicyMessageBytes+10 {
		t.Errorf("a message has %d bytes", n)
	}
}
