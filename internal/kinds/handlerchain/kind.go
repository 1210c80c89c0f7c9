// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Kind is the kind of the objects.
const Kind = registry.ChainKind

// TestKind is the kind of the tests beside the objects.
const TestKind = Kind + "Test"

// Description describes the kind.
var Description = kinds.Kind{
	Name: Kind, TestKind: TestKind, Shown: shownKind,
	Wanted: "chains", Instead: "the ExtensionConfigs of its steps choose namespaces",
	New:        func() kinds.Object { return &v1alpha1.HandlerChain{} },
	NewList:    func() runtime.Object { return &v1alpha1.HandlerChainList{} },
	Closes:     closes,
	Condition:  kinds.Verdict.ReadyCondition,
	Conditions: func(o kinds.Object) *[]metav1.Condition { return &o.(*v1alpha1.HandlerChain).Status.Conditions },
}

// Rules returns the rules of the kind for the hooks of a catalog. registered returns what is registered, or nil where
// that is not known.
func Rules(hooks *catalog.Catalog, registered func() *registry.Snapshot) kinds.Rules {
	compile := func(o *v1alpha1.HandlerChain) (registry.Chain, field.ErrorList) { return Compile(o, hooks) }
	return kinds.Rules{
		Kind: Description, Compile: kinds.Compiler(compile),
		Admit: func(before, o kinds.Object) (warnings []string, errs field.ErrorList) {
			s := registered()
			if before == nil && s != nil {
				if taken := s.TakenName(o.GetName()); taken != "" {
					errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.GetName(),
						"is "+taken+": choose another name"))
				}
			}
			chain, more := compile(o.(*v1alpha1.HandlerChain))
			if errs = append(errs, more...); len(errs) > 0 || s == nil || !s.Ready() {
				return nil, errs
			}
			return warningsOf(s, &chain), nil
		},
	}
}

// warningsOf returns why calls of a chain would fail for now.
func warningsOf(s *registry.Snapshot, c *registry.Chain) []string {
	if taken := s.Taken(c); taken != "" {
		return []string{"metadata.name: is also " + taken + ", so calls of the chain fail"}
	}
	var warnings []string
	if _, err := s.StepsOf(c); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			warnings = append(warnings, line+"; calls of the chain fail meanwhile")
		}
	}
	if more := len(warnings) - limits.Problems; more > 0 {
		warnings = append(warnings[:limits.Problems], fmt.Sprintf("%d more steps cannot be called", more))
	}
	return warnings
}

// stepMembers are the members of a HandlerChain that name no handler.
var stepMembers = []string{"allow", "hook", "onHold", "onPartialCoverage", "settings"}

// closes closes a chain and its steps. If these cannot be read, it closes their hook.
func closes(s kinds.Spec, c *kinds.Closed) {
	h := s.Hook()
	for _, name := range kinds.Texts(stepMembers, s.Members) {
		if handler, extension, ok := strings.Cut(name, "."); ok && !kinds.Unusable(handler) && !kinds.Unusable(extension) {
			c.Handlers = append(c.Handlers, name)
		}
	}
	if h == nil {
		c.Hooks = s.UnknownHook()
		return
	}
	c.Hooks = []hook.GroupHook{h.GroupHook()}
	c.ByName = h.OneHandler && len(c.Handlers) == 0
	if kinds.Unusable(c.Name) {
		return
	}
	c.Chain = &registry.Chain{
		Name: c.Name, Hook: h.GroupHook(), OneHandler: h.OneHandler, Strict: h.Category == catalog.InPlaceUpdate,
		Block: s.Text("onPartialCoverage") == string(v1alpha1.OnPartialCoverageBlock),
	}
	for _, name := range c.Handlers[:min(len(c.Handlers), limits.ChainSteps)] {
		c.Chain.Steps = append(c.Chain.Steps, registry.ChainStep{Handler: name})
	}
}
