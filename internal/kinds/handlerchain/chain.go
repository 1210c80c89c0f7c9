// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Compile returns the chain of a HandlerChain, by the rules of its schema and those that a schema cannot say: that
// the gateway has the hook, and can make one answer of several. It does not look at the status, does not change c, and
// does not look for the handlers.
func Compile(c *v1alpha1.HandlerChain, hooks *catalog.Catalog) (registry.Chain, field.ErrorList) {
	errs := kinds.ValidateName(c.Name)
	path := field.NewPath("spec")
	chain := registry.Chain{Name: c.Name, Block: c.Spec.OnPartialCoverage == v1alpha1.OnPartialCoverageBlock}
	h, hookErrs := chainHook(c.Spec.Hook, path.Child("hook"), hooks)
	errs = append(errs, hookErrs...)
	inPlace, covers := false, false
	if h != nil {
		inPlace = h.Category == catalog.InPlaceUpdate
		covers = inPlace && h.ReadOnly()
		chain.Hook, chain.OneHandler, chain.Strict = h.GroupHook(), h.OneHandler, inPlace
	}
	switch at := path.Child("onPartialCoverage"); c.Spec.OnPartialCoverage {
	case "":
	case v1alpha1.OnPartialCoverageReplace, v1alpha1.OnPartialCoverageBlock:
		if h != nil && !covers {
			errs = append(errs, field.Forbidden(at,
				"onPartialCoverage is for the hooks CanUpdateMachine and CanUpdateMachineSet"))
		}
	default:
		errs = append(errs, field.NotSupported(at, c.Spec.OnPartialCoverage,
			[]v1alpha1.OnPartialCoverage{v1alpha1.OnPartialCoverageBlock, v1alpha1.OnPartialCoverageReplace}))
	}
	at := path.Child("steps")
	switch n := len(c.Spec.Steps); {
	case n == 0:
		return chain, append(errs, field.Required(at, "must have the handlers that the chain consists of"))
	case n > limits.ChainSteps:
		return chain, append(errs, field.TooMany(at, n, limits.ChainSteps))
	}
	seen := map[string]bool{}
	for i := range c.Spec.Steps {
		step, at := &c.Spec.Steps[i], at.Index(i)
		errs = append(errs, checkStepName(step.Handler, at.Child("handler"))...)
		if seen[step.Handler] {
			errs = append(errs, field.Duplicate(at.Child("handler"), text.Cut(step.Handler, limits.QuotedBytes)))
		}
		seen[step.Handler] = true
		if n := len(step.Settings); n > limits.StepSettings {
			errs = append(errs, field.TooMany(at.Child("settings"), n, limits.StepSettings))
		}
		optional := step.Optional != nil && *step.Optional
		if optional && inPlace {
			errs = append(errs, field.Forbidden(at.Child("optional"),
				"a step of an in-place hook cannot be optional: Machines would be updated, or replaced, without it"))
		}
		errs = append(errs, checkAllow(step.Allow, h != nil && !covers, at.Child("allow"))...)
		errs = append(errs, checkOnHold(step.OnHold, h, at.Child("onHold"))...)
		chain.Steps = append(chain.Steps, registry.ChainStep{
			Handler: step.Handler, Settings: maps.Clone(step.Settings), Optional: optional, Allow: slices.Clone(step.Allow),
		})
		if step.OnHold == v1alpha1.OnHoldStop {
			chain.Steps[i].OnHold = registry.StopOnHold
		}
	}
	return chain, errs
}

// chainHook returns the hook that a chain is of, or nil with the error.
func chainHook(name string, path *field.Path, hooks *catalog.Catalog) (*catalog.Hook, field.ErrorList) {
	var known []string
	for _, h := range hooks.Hubs() {
		switch {
		case !h.Chainable():
		case h.Hook == name:
			return h, nil
		default:
			known = append(known, h.Hook)
		}
	}
	return nil, field.ErrorList{kinds.NoHook(path, name, "can have a chain", known)}
}

// checkStepName returns an error unless name is the registered name of a handler.
func checkStepName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be the registered name of a handler: <handler>.<ExtensionConfig>")}
	}
	handler, extensionConfig, ok := strings.Cut(name, ".")
	if !ok || registry.CheckName(handler) != nil || registry.CheckName(extensionConfig) != nil {
		return field.ErrorList{field.Invalid(path, text.Cut(name, limits.QuotedBytes),
			"must be the registered name of a handler: <handler>.<ExtensionConfig>, two DNS-1123 labels; a chain has no "+
				"chain as a step")}
	}
	return nil
}

// checkOnHold returns an error if a step of a hook cannot have a value of onHold. h is nil if the hook is not known.
func checkOnHold(onHold v1alpha1.OnHold, h *catalog.Hook, path *field.Path) field.ErrorList {
	switch onHold {
	case "":
	case v1alpha1.OnHoldContinue, v1alpha1.OnHoldStop:
		if h != nil && (!h.Mergeable || !h.Blocking) {
			return field.ErrorList{field.Forbidden(path, "onHold is for steps of lifecycle hooks that can hold; a chain of "+
				"UpdateMachine always stops at a step that is not done")}
		}
	default:
		return field.ErrorList{field.NotSupported(path, onHold,
			[]v1alpha1.OnHold{v1alpha1.OnHoldContinue, v1alpha1.OnHoldStop})}
	}
	return nil
}

// checkAllow returns an error for each path that a step cannot be allowed.
func checkAllow(allow []string, forbidden bool, path *field.Path) field.ErrorList {
	if len(allow) > 0 && forbidden {
		return field.ErrorList{field.Forbidden(path,
			"allow is for steps of the hooks CanUpdateMachine and CanUpdateMachineSet")}
	}
	if len(allow) > limits.AllowedPaths {
		return field.ErrorList{field.TooMany(path, len(allow), limits.AllowedPaths)}
	}
	var errs field.ErrorList
	for i, pointer := range allow {
		switch at := path.Index(i); {
		case len(pointer) > limits.AllowedPathBytes:
			errs = append(errs, field.TooLong(at, "", limits.AllowedPathBytes))
		case len(pointer) < 2 || pointer[0] != '/' || pointer[1] == '/':
			errs = append(errs, field.Invalid(at, pointer, "must be a JSON pointer, such as /machine/spec/version"))
		case slices.Contains(allow[:i], pointer):
			errs = append(errs, field.Duplicate(at, pointer))
		}
	}
	return errs
}

// Judge returns the verdict on a chain in a snapshot. inCluster reports whether the gateway can know the labels of
// Clusters, which steps of in-place hooks select by.
func Judge(s *registry.Snapshot, c *registry.Chain, inCluster bool) kinds.Verdict {
	if taken := s.Taken(c); taken != "" {
		return kinds.Verdictf(v1alpha1.NameCollisionReason, "The name is also %s: rename the chain", taken)
	}
	steps, err := s.StepsOf(c)
	if err != nil {
		return kinds.Verdictf(v1alpha1.StepMissingReason, "Calls fail: %s",
			text.Join(strings.Split(err.Error(), "\n"), "; ", limits.Problems))
	}
	for _, step := range steps {
		for _, p := range []*policy.Policy{step.Entry.Registration.Selection, step.Entry.Policy} {
			if !inCluster && c.Strict && p != nil && p.ObjectSelector != nil && !p.ObjectSelector.Empty() {
				return kinds.Verdictf(v1alpha1.StepMissingReason, "Calls fail: the objectSelector of %s for handler "+
					"%q selects Clusters, but a gateway without a cluster does not know the labels of Clusters: use "+
					"matchConditions or a namespaceSelector", p, step.Entry.Name)
			}
		}
	}
	if message := kinds.SeveralOf(s, c.Hook); c.OneHandler && message != "" {
		return kinds.Verdict{Reason: v1alpha1.SeveralOfferedReason, Message: message}
	}
	message := "Calls go to " + text.Plural(len(steps), "handler")
	if missing := len(c.Steps) - len(steps); missing > 0 {
		message += fmt.Sprintf(", and skip %d that are not registered", missing)
	}
	return kinds.Verdict{Reason: v1alpha1.ReadyReason, Message: message}
}
