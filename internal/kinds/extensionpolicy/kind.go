// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
)

// Kind is the kind of the objects.
const Kind = "ExtensionPolicy"

// Description describes the kind.
var Description = kinds.Kind{
	Name: Kind, Shown: shownKind, Wanted: "policies", Instead: "use spec.objectSelector to choose Clusters",
	New:       func() kinds.Object { return &v1alpha1.ExtensionPolicy{} },
	NewList:   func() runtime.Object { return &v1alpha1.ExtensionPolicyList{} },
	Closes:    closes,
	Condition: kinds.Verdict.AcceptedCondition,
	Conditions: func(o kinds.Object) *[]metav1.Condition {
		return &o.(*v1alpha1.ExtensionPolicy).Status.Conditions
	},
}

// Rules returns the rules of the kind for the hooks of a catalog, whose types are types.
func Rules(hooks *catalog.Catalog, compiler *policy.Compiler, types *policy.Types) kinds.Rules {
	compile := func(o *v1alpha1.ExtensionPolicy) (Policy, field.ErrorList) { return Compile(o, compiler, hooks) }
	return kinds.Rules{
		Kind: Description, Compile: kinds.Compiler(compile),
		Doubts: func(compiled any) field.ErrorList {
			p := compiled.(Policy)
			return p.CheckConditions(types, nil)
		},
		Doubtful: "the policy is in effect, and calls fail if it applies to them",
		Admit: func(_, o kinds.Object) (warnings []string, errs field.ErrorList) {
			of := o.(*v1alpha1.ExtensionPolicy)
			compiled, errs := compile(of)
			if len(errs) == 0 { // the handlers may not be known yet, and are looked at by the source
				errs = compiled.CheckConditions(types, nil)
			}
			if seconds := of.Spec.TimeoutSeconds; seconds != nil && *seconds >= int32(limits.Timeout.Seconds()) {
				warnings = append(warnings, "spec.timeoutSeconds: Cluster API waits at most 30 s, including the "+
					"time in the gateway: a smaller value leaves time for the answer to arrive")
			}
			return warnings, errs
		},
	}
}

// closes closes the target of a policy, or every hook if that cannot be read.
func closes(s kinds.Spec, c *kinds.Closed) {
	names, handler := kinds.Texts(nil, s.At("targetRef", "name")), s.Text("targetRef", "handler")
	switch names = slices.DeleteFunc(names, kinds.Unusable); {
	case len(names) == 0:
		c.AllHooks = true
	case len(names) == 1 && !kinds.Unusable(handler):
		c.Handlers = []string{handler + "." + names[0]}
	default:
		c.Extensions = names
	}
}
