// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Refused is an ExtensionPolicy that is not valid.
type Refused struct {
	Target  Target // empty if it is not known
	Message string
}

// Resolve decides which policies are in effect for which handlers. It returns the policies of each
// ExtensionConfig, for Registry.SetPolicies, and the verdict on each policy by name. The order of the policies does
// not matter.
//
// Of several policies for one target, the oldest is in effect; names break ties. The others are in conflict and take no
// effect. missing returns an error if a target does not exist; its policy is nevertheless part of the result, and takes
// effect as soon as the target appears.
func Resolve(policies []Policy, missing func(Target) error) (map[string]registry.Policies, map[string]kinds.Verdict) {
	policies = slices.Clone(policies)
	slices.SortFunc(policies, func(a, b Policy) int { return precedence(a.Created, a.Name, b.Created, b.Name) })
	winners := map[Target]*Policy{}
	resolved := map[string]registry.Policies{}
	verdicts := make(map[string]kinds.Verdict, len(policies))
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
		verdicts[p.Name] = kinds.Verdictf(v1alpha1.AcceptedReason, "In effect for %s", p.Target)
		if err := missing(p.Target); err != nil {
			verdicts[p.Name] = kinds.Verdictf(v1alpha1.TargetNotFoundReason,
				"%s; the policy takes effect as soon as its target appears", err)
		}
	}
	return resolved, verdicts
}

// precedence compares two policies for one target: the one that is in effect comes first.
func precedence(created time.Time, name string, otherCreated time.Time, otherName string) int {
	return cmp.Or(created.Compare(otherCreated), strings.Compare(name, otherName))
}

// InEffect returns that of several policies for one target that is in effect; nil if there is none.
func InEffect(sameTarget []*v1alpha1.ExtensionPolicy) *v1alpha1.ExtensionPolicy {
	if len(sameTarget) == 0 {
		return nil
	}
	return slices.MinFunc(sameTarget, func(a, b *v1alpha1.ExtensionPolicy) int {
		return precedence(a.CreationTimestamp.Time, a.Name, b.CreationTimestamp.Time, b.Name)
	})
}

func conflict(p, first *Policy) kinds.Verdict {
	why := "is older"
	if first.Created.Equal(p.Created) {
		why = "comes first by name"
	}
	return kinds.Verdictf(v1alpha1.ConflictedReason,
		"ExtensionPolicy %q, which %s, is also for %s: delete one of the two policies, or change a targetRef",
		first.Name, why, p.Target)
}

// Protocols returns the protocols other than REST that policies state, by ExtensionConfig. resolved is the result of
// Resolve.
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
func (p *Policy) JudgeNames(collisions []string) kinds.Verdict {
	return kinds.Verdictf(v1alpha1.NameCollisionReason,
		"In effect for %s, except for spec.offerAs: %s; to resolve a conflict, rename one of the two, or set "+
			"offerAs: Qualified",
		p.Target, text.Join(collisions, "; ", maxCollisions))
}

// Judge returns the verdict on a policy, unless its conditions have mistakes. Such a policy stays in effect, so that no
// handler is called for requests that it was meant to be left out for.
func (p *Policy) Judge(v kinds.Verdict, types *policy.Types, handlers map[string]hook.GroupHook) kinds.Verdict {
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
	return kinds.Verdictf(v1alpha1.InvalidReason, "%s, and calls fail if the policy applies to them: %s", effect,
		problems.Join(errs))
}

// JudgeLocal returns the verdict on a policy that is in effect for a registration without a server, which some fields
// mean nothing to.
func (p *Policy) JudgeLocal(reg *registry.Registration) kinds.Verdict {
	var idle []string
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"protocol", p.spec.Protocol != ""}, {"circuit", p.spec.Circuit != nil}, {"cache", p.spec.Cache != nil},
		{"onUndiscovered", p.spec.OnUndiscovered != ""}, {"offerAs", p.spec.OfferAs != ""},
		{"liftedHolds", len(p.spec.LiftedHolds) > 0},
	} {
		if field.set {
			idle = append(idle, "spec."+field.name)
		}
	}
	if len(idle) > 0 {
		return kinds.Verdictf(v1alpha1.InvalidReason, "In effect for %s, except for fields that apply only to an "+
			"extension with a server: %s", reg.Describe(), strings.Join(idle, ", "))
	}
	return kinds.Verdict{Reason: v1alpha1.AcceptedReason, Message: "In effect for " + reg.Describe()}
}
