// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// Verdict says whether a policy is in effect, or a chain can be called, and why. The same objects give the same text.
type Verdict struct {
	Reason  string // one of the reasons of the condition Accepted, or Ready
	Message string
}

// Accepted reports whether the policy is in effect.
func (v Verdict) Accepted() bool { return v.Reason == v1alpha1.AcceptedReason }

// Condition returns the verdict as the condition Accepted of that generation of the policy, without a time.
func (v Verdict) Condition(generation int64) metav1.Condition {
	return v.condition(v1alpha1.AcceptedCondition, v.Accepted(), generation)
}

func (v Verdict) condition(of string, isTrue bool, generation int64) metav1.Condition {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{
		Type: of, Status: status, ObservedGeneration: generation, Reason: v.Reason, Message: v.Message,
	}
}

// Refused is an ExtensionPolicy that is not valid.
type Refused struct {
	Target  Target // empty if it is not known
	Message string
}

// ResolvePolicies decides which policies are in effect for which handlers. It returns the policies of each
// ExtensionConfig, for Registry.SetPolicies, and the verdict on each policy by name. The order of the policies does
// not matter.
//
// Of several policies for one target, the oldest is in effect; names break ties. The others are in conflict and take no
// effect. missing returns an error if a target does not exist; its policy is nevertheless part of the result, and takes
// effect as soon as the target appears.
func ResolvePolicies(policies []Policy, missing func(Target) error) (map[string]registry.Policies, map[string]Verdict) {
	policies = slices.Clone(policies)
	slices.SortFunc(policies, func(a, b Policy) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	winners := map[Target]*Policy{}
	resolved := map[string]registry.Policies{}
	verdicts := make(map[string]Verdict, len(policies))
	for i := range policies {
		p := &policies[i]
		if first, taken := winners[p.Target]; taken {
			verdicts[p.Name] = conflict(p, first)
			continue
		}
		winners[p.Target] = p
		of := resolved[p.Target.ExtensionConfig]
		if p.Target.Handler == "" {
			of.All = p.Compiled
		} else {
			if of.Handlers == nil {
				of.Handlers = map[string]*policy.Policy{}
			}
			of.Handlers[p.Target.Handler] = p.Compiled
		}
		resolved[p.Target.ExtensionConfig] = of
		verdicts[p.Name] = Verdict{Reason: v1alpha1.AcceptedReason, Message: fmt.Sprintf("In effect for %s", p.Target)}
		if err := missing(p.Target); err != nil {
			verdicts[p.Name] = Verdict{
				Reason:  v1alpha1.TargetNotFoundReason,
				Message: fmt.Sprintf("%s; the policy takes effect as soon as its target appears", err),
			}
		}
	}
	return resolved, verdicts
}

func conflict(p, first *Policy) Verdict {
	why := "is older"
	if first.Created.Equal(p.Created) {
		why = "comes first by name"
	}
	return Verdict{
		Reason: v1alpha1.ConflictedReason,
		Message: fmt.Sprintf("ExtensionPolicy %q is for %s, too, and %s: delete one of them, or change its targetRef",
			first.Name, p.Target, why),
	}
}

// Protocols returns the protocols other than REST that policies state, by ExtensionConfig. resolved is the result of
// ResolvePolicies.
func Protocols(policies []Policy, resolved map[string]registry.Policies) map[string]registry.Protocol {
	protocols := map[string]registry.Protocol{}
	for i := range policies {
		if p := &policies[i]; p.Protocol != registry.REST && resolved[p.Target.ExtensionConfig].All == p.Compiled {
			protocols[p.Target.ExtensionConfig] = p.Protocol
		}
	}
	return protocols
}

// CheckConditions returns the mistakes in the conditions of a policy that suit the requests of no hook, or not those of
// a handler that the policy is for. handlers are those of its target that are known, with their hooks.
func (p *Policy) CheckConditions(types *policy.Types, handlers map[string]hook.GroupHook) field.ErrorList {
	conditions := p.Compiled.Conditions
	mistakes := types.CheckAny(conditions)
	if len(mistakes) == 0 {
		for _, name := range slices.Sorted(maps.Keys(handlers)) {
			if p.Target.Handler != "" && p.Target.Handler != name {
				continue
			}
			if mistakes = types.Check(conditions, handlers[name]); len(mistakes) > 0 {
				break
			}
		}
	}
	var errs field.ErrorList
	for _, m := range mistakes {
		errs = append(errs, field.Invalid(
			field.NewPath("spec", "matchConditions").Index(m.Index).Child("expression"), field.OmitValueType{}, m.Message,
		))
	}
	return errs
}

// maxCollisions is how many handlers a verdict names that are not offered under their own names.
const maxCollisions = 8

// JudgeNames returns the verdict on a policy that is in effect, with the reasons why handlers are not offered under
// their own names.
func (p *Policy) JudgeNames(collisions []string) Verdict {
	return Verdict{
		Reason: v1alpha1.NameCollisionReason,
		Message: fmt.Sprintf("In effect for %s, except for names: %s; rename one of the two, or set offerAs: Qualified",
			p.Target, text.Join(collisions, "; ", maxCollisions)),
	}
}

// Judge returns the verdict on a policy, unless its conditions have mistakes. Such a policy stays in effect, so that no
// handler is called for requests that it was meant to be left out for.
func (p *Policy) Judge(v Verdict, types *policy.Types, handlers map[string]hook.GroupHook) Verdict {
	if v.Reason == v1alpha1.ConflictedReason {
		return v
	}
	errs := p.CheckConditions(types, handlers)
	if len(errs) == 0 {
		return v
	}
	effect := fmt.Sprintf("In effect for %s", p.Target)
	if v.Accepted() {
		effect = v.Message
	}
	return Verdict{
		Reason:  v1alpha1.InvalidReason,
		Message: fmt.Sprintf("%s, and its calls fail: %s", effect, problems.Join(errs)),
	}
}
