// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// Rollouts knows which Clusters have moved to another version of an extension.
type Rollouts interface {
	// Readable reports whether all of that is known.
	Readable() bool
	// Moved returns how many Clusters of an ExtensionRollout have moved, by the ExtensionConfig that they have moved to.
	Moved(rollout string) map[string]int
}

// extensionRollouts applies the rules of ExtensionRollouts, including those that a schema cannot express: no
// ExtensionConfig is in two of them, and no change makes the answers for a Cluster that has moved another extension's.
type extensionRollouts struct {
	// registered returns what the registry has, or nil.
	registered func() *registry.Snapshot
	moved      Rollouts // may be nil
}

var _ admission.Validator[*v1alpha1.ExtensionRollout] = extensionRollouts{}

// ValidateCreate checks a new ExtensionRollout. Records of an earlier one of the name count.
func (w extensionRollouts) ValidateCreate(
	_ context.Context, o *v1alpha1.ExtensionRollout,
) (admission.Warnings, error) {
	errs := w.checkMembers(o)
	if s := w.registered(); s != nil {
		if taken := nameOfRollout(s, o); taken != nil {
			errs = append(errs, taken)
		}
	}
	if err := w.validate(o, append(errs, w.checkMoved(o)...)); err != nil {
		return nil, err
	}
	return w.missing(o), nil
}

// ValidateUpdate checks the new state of an ExtensionRollout. It allows one that is being deleted, and one whose spec
// stays.
func (w extensionRollouts) ValidateUpdate(
	_ context.Context, before, o *v1alpha1.ExtensionRollout,
) (admission.Warnings, error) {
	was, is := &before.Spec, &o.Spec
	if !o.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(was, is) {
		return nil, nil
	}
	var errs field.ErrorList
	if was.Stable != is.Stable || was.Candidate != is.Candidate {
		errs = append(w.checkMembers(o), w.checkMoved(o)...)
	}
	if err := w.validate(o, errs); err != nil {
		return nil, err
	}
	warnings := w.missing(o)
	if was.Stable != is.Stable {
		warnings = append(warnings, fmt.Sprintf("spec.stable: %s answers now for all Clusters that have not moved: "+
			"hookgate rollout promote shows first what that changes", is.Stable))
	}
	return warnings, nil
}

// ValidateDelete refuses the deletion of an ExtensionRollout whose Clusters are in part with the candidate: both of its
// ExtensionConfigs would be called for all of them.
func (w extensionRollouts) ValidateDelete(
	_ context.Context, o *v1alpha1.ExtensionRollout,
) (admission.Warnings, error) {
	refuse := func(err error) error {
		return apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("extensionrollouts").GroupResource(), o.Name, err)
	}
	switch {
	case w.moved == nil:
		return nil, nil
	case !w.moved.Readable():
		return nil, refuse(errors.New(notRead))
	}
	if n, to := w.moved.Moved(o.Name)[o.Spec.Candidate], o.Spec.Candidate; n > 0 {
		return nil, refuse(fmt.Errorf("%s moved to %q, and without the ExtensionRollout, both of its ExtensionConfigs would "+
			"be called for all Clusters: make %[2]q stable first (hookgate rollout promote %[3]s), or move them back "+
			"(hookgate rollout undo %[3]s)", clustersHave(n), to, o.Name))
	}
	return nil, nil
}

// notRead is why a change is refused for now.
const notRead = "which Clusters have moved is not known yet, because the " + rollout.RecordKind +
	"s have not been read: try again"

func clustersHave(n int) string {
	if n == 1 {
		return "1 Cluster has"
	}
	return fmt.Sprintf("%d Clusters have", n)
}

// checkMembers returns an error for each ExtensionConfig that belongs to another ExtensionRollout.
func (w extensionRollouts) checkMembers(o *v1alpha1.ExtensionRollout) (errs field.ErrorList) {
	s := w.registered()
	if s == nil {
		return nil
	}
	at := field.NewPath("spec")
	for _, named := range []struct {
		at   *field.Path
		name string
	}{
		{field.NewPath("metadata", "name"), o.Name}, {at.Child("stable"), o.Spec.Stable},
		{at.Child("candidate"), o.Spec.Candidate},
	} {
		if of, ok := s.MemberOf(named.name); ok && named.name != "" && of.Name != o.Name {
			errs = append(errs, field.Invalid(named.at, named.name, fmt.Sprintf(
				"belongs to %s, too: an ExtensionConfig can be in one ExtensionRollout only", of)))
		}
	}
	return errs
}

// nameOfRollout returns an error if the name of a new ExtensionRollout is that of something that it is not for.
func nameOfRollout(s *registry.Snapshot, o *v1alpha1.ExtensionRollout) *field.Error {
	at := field.NewPath("metadata", "name")
	taken := s.TakenByLocal(o.Name)
	if c, ok := s.Chain(o.Name); ok {
		taken = fmt.Sprintf("the name of HandlerChain %q", c.Name)
	}
	if taken != "" {
		return field.Invalid(at, o.Name, "is "+taken+", too: choose another name")
	}
	if s.Knows(o.Name) && o.Name != o.Spec.Stable && o.Name != o.Spec.Candidate {
		return field.Invalid(at, o.Name, fmt.Sprintf("is the name of ExtensionConfig %q, which would not be called any "+
			"more: make it stable, or choose another name", o.Name))
	}
	return nil
}

// checkMoved returns an error for Clusters that have moved to an ExtensionConfig that would have no part any more.
func (w extensionRollouts) checkMoved(o *v1alpha1.ExtensionRollout) (errs field.ErrorList) {
	if w.moved == nil {
		return nil
	}
	at := field.NewPath("spec", "candidate")
	if !w.moved.Readable() {
		return field.ErrorList{field.Forbidden(at, notRead)}
	}
	moved := w.moved.Moved(o.Name)
	for _, to := range slices.Sorted(maps.Keys(moved)) {
		if to != o.Spec.Stable && to != o.Spec.Candidate {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s moved to %q, which would be neither stable nor candidate: "+
				"make it stable (hookgate rollout promote %[3]s), or move them back first (hookgate rollout undo %[3]s)",
				clustersHave(moved[to]), to, o.Name)))
		}
	}
	return errs
}

// missing returns a warning for each member whose handlers are not known.
func (w extensionRollouts) missing(o *v1alpha1.ExtensionRollout) (warnings admission.Warnings) {
	s := w.registered()
	if s == nil || !s.Ready() {
		return nil
	}
	if _, known := s.Registration(o.Spec.Stable); !known {
		warnings = append(warnings, fmt.Sprintf("spec.stable: the handlers of ExtensionConfig %q are not known; calls fail "+
			"meanwhile", o.Spec.Stable))
	}
	if _, known := s.Registration(o.Spec.Candidate); !known && o.Spec.Candidate != "" {
		warnings = append(warnings, fmt.Sprintf("spec.candidate: the handlers of ExtensionConfig %q are not known; no "+
			"Cluster moves meanwhile", o.Spec.Candidate))
	}
	return warnings
}

// validate returns the mistakes in an ExtensionRollout besides errs.
func (extensionRollouts) validate(o *v1alpha1.ExtensionRollout, errs field.ErrorList) error {
	if errs = append(errs, rollout.Check(o, true)...); len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(rollout.Kind).GroupKind(), o.Name, problems.Bound(errs))
}
