// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// maxTimeoutSeconds is the longest timeout, as Cluster API has it.
const maxTimeoutSeconds = int32(limits.Timeout / time.Second)

// Policy is an ExtensionPolicy, checked and compiled.
type Policy struct {
	Name    string
	Target  Target
	Created time.Time // zero in a manifest
	// Protocol is the protocol of the extension. It is REST unless a policy for all handlers states another.
	Protocol registry.Protocol

	// Compiled never changes, so that one pointer is one content.
	Compiled *policy.Policy

	spec v1alpha1.ExtensionPolicySpec // of which Compiled was made
}

// Target is the target of a policy: all handlers of an ExtensionConfig, or one.
type Target struct {
	ExtensionConfig string
	Handler         string // empty for all
}

// Missing returns the error of a target that does not exist.
func (t Target) Missing() error {
	return fmt.Errorf("there is no ExtensionConfig, HookRule or HookJob %q", t.ExtensionConfig)
}

// String returns the target as it appears in messages.
func (t Target) String() string {
	if t.Handler == "" {
		return fmt.Sprintf("ExtensionConfig %q", t.ExtensionConfig)
	}
	return fmt.Sprintf("handler %q of ExtensionConfig %q", t.Handler, t.ExtensionConfig)
}

// Compile returns the Policy of an ExtensionPolicy, by the rules of its schema and those that a schema cannot
// say: that a selector can be parsed, a condition compiled, and that hooks has the hooks. It does not look at the
// status, and does not change p.
func Compile(
	p *v1alpha1.ExtensionPolicy, c *policy.Compiler, hooks *catalog.Catalog,
) (Policy, field.ErrorList) {
	errs := validatePolicyName(p.Name)
	path := field.NewPath("spec")
	spec := p.Spec.DeepCopy()
	errs = append(errs, validateTarget(&spec.TargetRef, path.Child("targetRef"))...)

	compiled := &policy.Policy{Name: p.Name, FailurePolicy: hook.FailurePolicy(spec.FailurePolicy), Order: spec.Order}
	if seconds := spec.TimeoutSeconds; seconds != nil {
		if *seconds < 1 || *seconds > maxTimeoutSeconds {
			errs = append(errs, field.Invalid(path.Child("timeoutSeconds"), *seconds,
				fmt.Sprintf("must be between 1 and %d", maxTimeoutSeconds)))
		}
		compiled.Timeout = time.Duration(*seconds) * time.Second
	}
	errs = append(errs, checkFailurePolicy(spec.FailurePolicy, path.Child("failurePolicy"))...)
	switch compiled.ClusterAPIVersion = string(spec.ClusterAPIVersion); spec.ClusterAPIVersion {
	case "", v1alpha1.ClusterAPIVersionV1Beta1, v1alpha1.ClusterAPIVersionV1Beta2:
	default:
		errs = append(errs, field.NotSupported(path.Child("clusterAPIVersion"), spec.ClusterAPIVersion,
			[]v1alpha1.ClusterAPIVersion{v1alpha1.ClusterAPIVersionV1Beta1, v1alpha1.ClusterAPIVersionV1Beta2}))
	}
	compiled.ClusterAPIRelease = spec.ClusterAPIRelease
	errs = append(errs, checkRelease(spec, path)...)
	selector, selectorErrs := kinds.ConvertSelector(spec.ObjectSelector, path.Child("objectSelector"))
	errs = append(errs, selectorErrs...)
	compiled.ObjectSelector = selector
	conditions, conditionErrs := kinds.CompileConditions(spec.MatchConditions, path.Child("matchConditions"), c)
	errs = append(errs, conditionErrs...)
	compiled.Conditions = conditions

	protocol := registry.REST
	switch at := path.Child("protocol"); spec.Protocol {
	case "", v1alpha1.ProtocolREST:
	case v1alpha1.ProtocolGRPC:
		protocol = registry.GRPC
	default:
		errs = append(errs, field.NotSupported(at, spec.Protocol,
			[]v1alpha1.Protocol{v1alpha1.ProtocolGRPC, v1alpha1.ProtocolREST}))
	}
	limits, limitErrs := convertLimits(spec.Limits, path.Child("limits"))
	settings, circuitErrs := convertCircuit(spec.Circuit, path.Child("circuit"))
	ttl, cacheErrs := convertCache(spec.Cache, path.Child("cache"))
	compiled.Limits, compiled.Circuit, compiled.CacheTTL = limits, settings, ttl
	errs = slices.Concat(errs, limitErrs, circuitErrs, cacheErrs)
	compiled.Hooks, compiled.OnUndiscovered = spec.Hooks, hook.FailurePolicy(spec.OnUndiscovered)
	errs = append(errs, checkHooks(spec.Hooks, path.Child("hooks"), hooks)...)
	errs = append(errs, checkFailurePolicy(spec.OnUndiscovered, path.Child("onUndiscovered"))...)
	switch compiled.OfferAs = policy.OfferAs(spec.OfferAs); spec.OfferAs {
	case "", v1alpha1.OfferAsQualified, v1alpha1.OfferAsOriginal:
	default:
		errs = append(errs, field.NotSupported(path.Child("offerAs"), spec.OfferAs,
			[]v1alpha1.OfferAs{v1alpha1.OfferAsOriginal, v1alpha1.OfferAsQualified}))
	}
	switch compiled.Messages = policy.Messages(spec.Messages); spec.Messages {
	case "", v1alpha1.MessagesVerbatim, v1alpha1.MessagesSteady:
	default:
		errs = append(errs, field.NotSupported(path.Child("messages"), spec.Messages,
			[]v1alpha1.Messages{v1alpha1.MessagesSteady, v1alpha1.MessagesVerbatim}))
	}
	lifted, liftErrs := convertLifts(p, path.Child("liftedHolds"), hooks)
	compiled.Lifted, errs = lifted, append(errs, liftErrs...)
	errs = append(errs, extensionWide(spec, path)...)
	if setsNothing(spec) {
		errs = append(errs, field.Required(path,
			"must set at least one of protocol, clusterAPIVersion, clusterAPIRelease, timeoutSeconds, failurePolicy, "+
				"order, objectSelector, matchConditions, limits, circuit, cache, hooks, onUndiscovered, offerAs, messages and "+
				"liftedHolds"))
	}
	return Policy{
		Name: p.Name, Created: p.CreationTimestamp.Time, Protocol: protocol, Compiled: compiled, spec: *spec,
		Target: Target{ExtensionConfig: spec.TargetRef.Name, Handler: spec.TargetRef.Handler},
	}, errs
}

// setsNothing reports whether a policy has only a target.
func setsNothing(spec *v1alpha1.ExtensionPolicySpec) bool {
	return spec.Protocol == "" && spec.ClusterAPIVersion == "" && spec.ClusterAPIRelease == "" &&
		spec.TimeoutSeconds == nil && spec.FailurePolicy == "" && spec.Order == nil && spec.ObjectSelector == nil &&
		len(spec.MatchConditions) == 0 &&
		spec.Limits == nil && spec.Circuit == nil && spec.Cache == nil && len(spec.Hooks) == 0 &&
		spec.OnUndiscovered == "" && spec.OfferAs == "" && spec.Messages == "" && len(spec.LiftedHolds) == 0
}

func checkFailurePolicy(p v1alpha1.FailurePolicy, path *field.Path) field.ErrorList {
	switch p {
	case "", v1alpha1.FailurePolicyFail, v1alpha1.FailurePolicyIgnore:
		return nil
	}
	return field.ErrorList{field.NotSupported(path, p,
		[]v1alpha1.FailurePolicy{v1alpha1.FailurePolicyFail, v1alpha1.FailurePolicyIgnore})}
}

func validatePolicyName(name string) field.ErrorList {
	path := field.NewPath("metadata", "name")
	if name == "" {
		return field.ErrorList{field.Required(path, "must be a DNS-1123 subdomain")}
	}
	var errs field.ErrorList
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

func validateTarget(t *v1alpha1.TargetReference, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name := path.Child("name"); t.Name == "" {
		errs = append(errs, field.Required(name, "must be the name of an ExtensionConfig"))
	} else if err := registry.CheckName(t.Name); err != nil {
		errs = append(errs, field.Invalid(name, t.Name, err.Error()))
	}
	if t.Handler == "" {
		return errs
	}
	if err := registry.CheckName(t.Handler); err != nil {
		errs = append(errs, field.Invalid(path.Child("handler"), t.Handler,
			err.Error()+"; give the name from Discovery, without the name of the ExtensionConfig"))
	}
	return errs
}
