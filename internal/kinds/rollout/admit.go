// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Moves knows which Clusters have moved to another version of an extension.
type Moves interface {
	// Readable reports whether all of that is known.
	Readable() bool
	// Moved returns how many Clusters of an ExtensionRollout have moved, by the ExtensionConfig that they have moved to.
	Moved(rollout string) map[string]int
}

// admission applies the rules that need more than an ExtensionRollout alone: no ExtensionConfig is in two of them, and
// no change makes the answers for a Cluster that has moved another extension's.
type admission struct {
	// registered returns what the registry has, or nil.
	registered func() *registry.Snapshot
	moved      Moves // may be nil
}

// admit implements kinds.Rules.Admit. Records of an earlier object of the name of a new one count.
func (a *admission) admit(before, now kinds.Object) (warnings []string, errs field.ErrorList) {
	o := now.(*v1alpha1.ExtensionRollout)
	was, _ := before.(*v1alpha1.ExtensionRollout)
	if was == nil || was.Spec.Stable != o.Spec.Stable || was.Spec.Candidate != o.Spec.Candidate {
		errs = a.checkMembers(o)
		if s := a.registered(); was == nil && s != nil {
			if taken := checkName(s, o); taken != nil {
				errs = append(errs, taken)
			}
		}
		errs = append(errs, a.checkMoved(o)...)
	}
	if errs = append(errs, Check(o, true)...); len(errs) > 0 {
		return nil, errs
	}
	warnings = a.missing(o)
	if was != nil && was.Spec.Stable != o.Spec.Stable {
		warnings = append(warnings, fmt.Sprintf("spec.stable: %s now answers for all Clusters that have not moved; "+
			"to see the effects before you change spec.stable, use hookgate rollout promote", o.Spec.Stable))
	}
	return warnings, nil
}

// keeps implements kinds.Rules.Keeps. It keeps an ExtensionRollout whose Clusters are in part with the candidate: both
// of its ExtensionConfigs would be called for all of them.
func (a *admission) keeps(object kinds.Object) error {
	o := object.(*v1alpha1.ExtensionRollout)
	switch {
	case a.moved == nil:
		return nil
	case !a.moved.Readable():
		return errors.New(notRead)
	}
	if n, to := a.moved.Moved(o.Name)[o.Spec.Candidate], o.Spec.Candidate; n > 0 {
		return fmt.Errorf("%s moved to %q; without the ExtensionRollout, the gateway would call both of its "+
			"ExtensionConfigs for all Clusters: first make %[2]q stable (hookgate rollout promote %[3]s), or move the "+
			"Clusters back (hookgate rollout undo %[3]s)", clustersHave(n), to, o.Name)
	}
	return nil
}

// notRead is why a change is refused for now.
const notRead = "it is not known yet which Clusters have moved, because the " + RecordKind +
	"s have not been read: try again"

func clustersHave(n int) string {
	if n == 1 {
		return "1 Cluster has"
	}
	return fmt.Sprintf("%d Clusters have", n)
}

// checkMembers returns an error for each ExtensionConfig that belongs to another ExtensionRollout.
func (a *admission) checkMembers(o *v1alpha1.ExtensionRollout) (errs field.ErrorList) {
	s := a.registered()
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
				"also belongs to %s: an ExtensionConfig can be in only one ExtensionRollout", of)))
		}
	}
	return errs
}

// checkName returns an error if the name of a new ExtensionRollout is that of something that it is not for.
func checkName(s *registry.Snapshot, o *v1alpha1.ExtensionRollout) *field.Error {
	at := field.NewPath("metadata", "name")
	taken := s.TakenByLocal(o.Name)
	if c, ok := s.Chain(o.Name); ok {
		taken = "the name of " + c.String()
	}
	if taken != "" {
		return field.Invalid(at, o.Name, "is "+taken+": choose another name")
	}
	if s.Knows(o.Name) && o.Name != o.Spec.Stable && o.Name != o.Spec.Candidate {
		return field.Invalid(at, o.Name, fmt.Sprintf("is the name of ExtensionConfig %q, which would get no more calls: "+
			"set spec.stable to that ExtensionConfig, or choose another name", o.Name))
	}
	return nil
}

// checkMoved returns an error for Clusters that have moved to an ExtensionConfig that would have no part any more.
func (a *admission) checkMoved(o *v1alpha1.ExtensionRollout) (errs field.ErrorList) {
	if a.moved == nil {
		return nil
	}
	at := field.NewPath("spec", "candidate")
	if !a.moved.Readable() {
		return field.ErrorList{field.Forbidden(at, notRead)}
	}
	moved := a.moved.Moved(o.Name)
	for _, to := range slices.Sorted(maps.Keys(moved)) {
		if to != o.Spec.Stable && to != o.Spec.Candidate {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("%s moved to %q, which would be neither stable nor candidate: "+
				"make it stable (hookgate rollout promote %[3]s), or move the Clusters back first (hookgate rollout undo %[3]s)",
				clustersHave(moved[to]), to, o.Name)))
		}
	}
	return errs
}

// missing returns a warning for each member whose handlers are not known.
func (a *admission) missing(o *v1alpha1.ExtensionRollout) (warnings []string) {
	s := a.registered()
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
