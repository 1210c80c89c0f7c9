// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Kind is the kind of the objects.
const Kind = "HookRule"

// HandlerName is the name of the one handler of a rule, so that its registered name is rule.<name>.
const HandlerName = "rule"

// TestKind is the kind of the tests beside the objects.
const TestKind = Kind + "Test"

// Description describes the kind.
var Description = kinds.Kind{
	Name: Kind, TestKind: TestKind, Shown: shownKind(),
	Wanted: "rules", Instead: "use spec.namespaceSelector to choose namespaces",
	New:        func() kinds.Object { return &v1alpha1.HookRule{} },
	NewList:    func() runtime.Object { return &v1alpha1.HookRuleList{} },
	Closes:     closes,
	Condition:  kinds.Verdict.ReadyCondition,
	Conditions: func(o kinds.Object) *[]metav1.Condition { return &o.(*v1alpha1.HookRule).Status.Conditions },
}

// Rules returns the rules of the kind. registered returns what is registered, or nil where that is not known.
func (c *Compiler) Rules(registered func() *registry.Snapshot) kinds.Rules {
	compile := kinds.Compiler(c.Compile)
	return kinds.Rules{
		Kind: Description, Compile: compile, Admit: kinds.AdmitLocal(Kind, HandlerName, compile, registered),
	}
}

// closes closes the hook of a rule in its namespaces. A rule that only audits closes nothing: its answers never count.
func closes(s kinds.Spec, c *kinds.Closed) {
	if s.Text("action") != string(v1alpha1.HookRuleAudit) {
		kinds.ClosesHook(HandlerName)(s, c)
	}
}
