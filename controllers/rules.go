// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

// newRules returns the follower of HookRules, for which params watches what they read until ctx is done, and places
// sees the places in their status.
func newRules(
	ctx context.Context, set *discovery.LocalSet, rules *hookrule.Compiler, params *ruleParams, places *rulePlaces,
	shared *own,
) *follower[*v1alpha1.HookRule, registry.Registration] {
	type object = *v1alpha1.HookRule
	reads := map[string][]hookrule.Reference{} // by the names of the rules
	var f *follower[object, registry.Registration]
	f = newFollower(shared, kind[object, registry.Registration]{
		name: hookrule.Kind, object: &v1alpha1.HookRule{}, list: &v1alpha1.HookRuleList{},
		compile: func(o object) (registry.Registration, field.ErrorList) { return rules.Compile(o) },
		apply: func(valid []registry.Registration, invalid map[string]mistaken[object]) []string {
			clear(reads)
			var all []hookrule.Reference
			for i := range valid {
				if rule, ok := valid[i].Local.(*hookrule.Rule); ok {
					reads[valid[i].Name] = rule.References()
					all = append(all, rule.References()...)
				}
			}
			params.use(ctx, all)
			places.see(f.items, valid)
			set.Set(append(valid, closedOf(invalid)...), messagesOf(invalid))
			return nil // no extension is called differently
		},
		verdicts: func() map[string]extensionconfig.Verdict {
			verdicts := set.Verdicts()
			for name, v := range verdicts {
				problem := params.problem(reads[name])
				if !v.Ready() || problem == "" {
					continue
				}
				says := "Calls fail with NotReady: "
				if v.Reason == v1alpha1.AuditReason {
					says = "What it would answer is not known: "
				}
				verdicts[name] = extensionconfig.Verdict{Reason: v1alpha1.ParamsNotReadyReason, Message: says + problem}
			}
			return verdicts
		},
		report:     set.Report,
		condition:  extensionconfig.Verdict.ReadyCondition,
		conditions: func(o object) *[]metav1.Condition { return &o.Status.Conditions },
	})
	return f
}

// closedOf returns what stands for the closed objects of a kind without servers, by name.
func closedOf[O any](invalid map[string]mistaken[O]) (all []registry.Registration) {
	for _, name := range slices.Sorted(maps.Keys(invalid)) {
		if closed := invalid[name].closed; closed != nil && closed.Registration != nil {
			all = append(all, *closed.Registration)
		}
	}
	return all
}

// messagesOf returns what is wrong with objects that are not valid, by name.
func messagesOf[O any](invalid map[string]mistaken[O]) map[string]string {
	messages := make(map[string]string, len(invalid))
	for name, m := range invalid {
		messages[name] = m.message
	}
	return messages
}
