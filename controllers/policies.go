// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
)

// newPolicies returns the follower of ExtensionPolicies. They are evaluated together, because they can be in conflict.
func newPolicies(
	set *discovery.PolicySet, compiler *policy.Compiler, hooks *catalog.Catalog, shared *own,
) *follower[*v1alpha1.ExtensionPolicy, extensionconfig.Policy] {
	type object = *v1alpha1.ExtensionPolicy
	return newFollower(shared, kind[object, extensionconfig.Policy]{
		name: policyKind, object: &v1alpha1.ExtensionPolicy{}, list: &v1alpha1.ExtensionPolicyList{},
		compile: func(o object) (extensionconfig.Policy, field.ErrorList) {
			return extensionconfig.ConvertPolicy(o, compiler, hooks)
		},
		apply: func(valid []extensionconfig.Policy, invalid map[string]mistaken[object]) []string {
			refused := make(map[string]extensionconfig.Refused, len(invalid))
			for name, m := range invalid {
				ref := &m.object.Spec.TargetRef
				refused[name] = extensionconfig.Refused{
					Target: extensionconfig.Target{ExtensionConfig: ref.Name, Handler: ref.Handler}, Message: m.message,
				}
			}
			set.Refuse(refused)
			return set.Set(valid)
		},
		verdicts: set.Verdicts, report: set.Report,
		condition:  extensionconfig.Verdict.Condition,
		conditions: func(o object) *[]metav1.Condition { return &o.Status.Conditions },
	})
}
