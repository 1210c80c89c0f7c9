// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/admission"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// The limits of the schema of ExtensionPolicy for whole extensions.
const (
	maxCalls               = 65536
	maxConsecutiveFailures = 1000
	maxOpenSeconds         = 3600
	maxHooks               = 64
)

// extensionWide returns an error for each field of a policy for one handler that only a policy for the whole extension
// can set.
func extensionWide(spec *v1alpha1.ExtensionPolicySpec, path *field.Path) field.ErrorList {
	if spec.TargetRef.Handler == "" {
		return nil
	}
	var errs field.ErrorList
	for _, f := range []struct {
		name, verb string
		set        bool
	}{
		{"protocol", "is", spec.Protocol != ""},
		{"limits", "are", spec.Limits != nil},
		{"circuit", "is", spec.Circuit != nil},
		{"cache", "is", spec.Cache != nil},
		{"hooks", "are", spec.Hooks != nil},
		{"onUndiscovered", "is", spec.OnUndiscovered != ""},
		{"offerAs", "is", spec.OfferAs != ""},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name),
				f.name+" "+f.verb+" for all handlers of an extension: leave targetRef.handler out"))
		}
	}
	return errs
}

// convertLimits returns the limits that a policy sets, or nil if it sets none.
func convertLimits(l *v1alpha1.Limits, path *field.Path) (*admission.Limits, field.ErrorList) {
	if l == nil {
		return nil, nil
	}
	if *l == (v1alpha1.Limits{}) {
		return nil, field.ErrorList{field.Required(path, "must set at least one of maxInFlight and maxWaiting")}
	}
	limits := admission.Default()
	errs := inRange(&limits.MaxInFlight, l.MaxInFlight, 1, maxCalls, path.Child("maxInFlight"))
	return &limits, append(errs, inRange(&limits.MaxWaiting, l.MaxWaiting, 0, maxCalls, path.Child("maxWaiting"))...)
}

// convertCircuit returns the settings of the circuit that a policy sets, or nil if it sets none.
func convertCircuit(c *v1alpha1.Circuit, path *field.Path) (*circuit.Settings, field.ErrorList) {
	if c == nil {
		return nil, nil
	}
	if *c == (v1alpha1.Circuit{}) {
		return nil, field.ErrorList{field.Required(path, "must set at least one of mode, consecutiveFailures, "+
			"failureRatePercent, minOpenSeconds and maxOpenSeconds")}
	}
	s := circuit.Default()
	var errs field.ErrorList
	switch c.Mode {
	case "", v1alpha1.CircuitModeEnabled:
	case v1alpha1.CircuitModeDisabled:
		s.Disabled = true
	default:
		errs = append(errs, field.NotSupported(path.Child("mode"), c.Mode,
			[]v1alpha1.CircuitMode{v1alpha1.CircuitModeEnabled, v1alpha1.CircuitModeDisabled}))
	}
	errs = append(errs, inRange(&s.ConsecutiveFailures, c.ConsecutiveFailures, 1, maxConsecutiveFailures,
		path.Child("consecutiveFailures"))...)
	errs = append(errs, inRange(&s.FailureRatePercent, c.FailureRatePercent, 1, 100, path.Child("failureRatePercent"))...)
	least, most := int(s.MinOpen/time.Second), int(s.MaxOpen/time.Second)
	errs = append(errs, inRange(&least, c.MinOpenSeconds, 1, maxOpenSeconds, path.Child("minOpenSeconds"))...)
	errs = append(errs, inRange(&most, c.MaxOpenSeconds, 1, maxOpenSeconds, path.Child("maxOpenSeconds"))...)
	if c.MinOpenSeconds != nil && c.MaxOpenSeconds != nil && most < least {
		errs = append(errs, field.Invalid(path.Child("maxOpenSeconds"), most, "must not be less than minOpenSeconds"))
	}
	// One that is set wins over the default of the other.
	if c.MaxOpenSeconds != nil {
		least = min(least, most)
	}
	s.MinOpen, s.MaxOpen = time.Duration(least)*time.Second, time.Duration(max(least, most))*time.Second
	return &s, errs
}

// checkHooks returns an error for each name that is not the one of a hook with handlers.
func checkHooks(names []string, path *field.Path, hooks *catalog.Catalog) field.ErrorList {
	if len(names) > maxHooks {
		return field.ErrorList{field.TooMany(path, len(names), maxHooks)}
	}
	var known []string
	for _, h := range hooks.Hubs() {
		if !h.Singleton() {
			known = append(known, h.Hook)
		}
	}
	var errs field.ErrorList
	for i, name := range names {
		quoted := text.Cut(name, limits.QuotedBytes)
		switch meant := text.Nearest(quoted, known); {
		case slices.Contains(names[:i], name):
			errs = append(errs, field.Duplicate(path.Index(i), quoted))
		case slices.Contains(known, name):
		case meant != "":
			errs = append(errs, field.Invalid(path.Index(i), quoted, fmt.Sprintf("no hook has this name: did you mean %q?",
				meant)))
		default:
			errs = append(errs, field.NotSupported(path.Index(i), quoted, known))
		}
	}
	return errs
}

// inRange sets to, unless value is nil.
func inRange(to *int, value *int32, least, most int, path *field.Path) field.ErrorList {
	if value == nil {
		return nil
	}
	*to = int(*value)
	if *to < least || *to > most {
		return field.ErrorList{field.Invalid(path, *value, fmt.Sprintf("must be between %d and %d", least, most))}
	}
	return nil
}

// convertCache returns for how long a policy keeps answers, or 0 if it keeps none.
func convertCache(c *v1alpha1.Cache, path *field.Path) (time.Duration, field.ErrorList) {
	if c == nil {
		return 0, nil
	}
	seconds := 0
	errs := inRange(&seconds, &c.TTLSeconds, 1, limits.CacheSeconds, path.Child("ttlSeconds"))
	return time.Duration(seconds) * time.Second, errs
}
