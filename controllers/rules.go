// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/discovery"
	"github.com/hookgate/hookgate/internal/extensionconfig"
	"github.com/hookgate/hookgate/internal/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// newRules returns the follower of HookRules.
func newRules(
	set *discovery.LocalSet, rules *hookrule.Compiler, shared *own,
) *follower[*v1alpha1.HookRule, registry.Registration] {
	type object = *v1alpha1.HookRule
	return newFollower(shared, kind[object, registry.Registration]{
		name: hookrule.Kind, object: &v1alpha1.HookRule{}, list: &v1alpha1.HookRuleList{},
		compile: func(o object) (registry.Registration, field.ErrorList) { return rules.Compile(o) },
		apply: func(valid []registry.Registration, invalid map[string]mistaken[object]) []string {
			set.Set(valid, messagesOf(invalid))
			return nil // no extension is called differently
		},
		verdicts: set.Verdicts, report: set.Report,
		condition:  extensionconfig.Verdict.ReadyCondition,
		conditions: func(o object) *[]metav1.Condition { return &o.Status.Conditions },
	})
}

// messagesOf returns what is wrong with objects that are not valid, by name.
func messagesOf[O any](invalid map[string]mistaken[O]) map[string]string {
	messages := make(map[string]string, len(invalid))
	for name, m := range invalid {
		messages[name] = m.message
	}
	return messages
}
