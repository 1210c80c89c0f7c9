// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/registry"
)

// locals compiles the objects of a kind without servers, and checks that no new one has a name that is taken.
type locals[O client.Object] struct {
	kind, handler string
	compile       func(O) (registry.Registration, field.ErrorList)
	spec          func(O) any
	// registered returns what the registry has, or nil.
	registered func() *registry.Snapshot
}

var _ admission.Validator[*v1alpha1.HookRule] = locals[*v1alpha1.HookRule]{}

// ValidateCreate checks a new object.
func (w locals[O]) ValidateCreate(_ context.Context, o O) (admission.Warnings, error) {
	var errs field.ErrorList
	if taken := w.taken(o); taken != "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), o.GetName(),
			"is "+taken+", too: choose another name"))
	}
	return nil, w.validate(o, errs)
}

// ValidateUpdate checks the new state of an object. It allows one that is being deleted, and one whose spec stays.
func (w locals[O]) ValidateUpdate(_ context.Context, before, o O) (admission.Warnings, error) {
	if !o.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(w.spec(before), w.spec(o)) {
		return nil, nil
	}
	if err := w.validate(o, nil); err != nil {
		return nil, err
	}
	if taken := w.taken(o); taken != "" {
		return admission.Warnings{"metadata.name: is " + taken + ", too: one of the two is not served"}, nil
	}
	return nil, nil
}

// ValidateDelete allows every deletion.
func (locals[O]) ValidateDelete(context.Context, O) (admission.Warnings, error) {
	return nil, nil
}

// taken says what else the name of an object means; nothing if it is free.
func (w locals[O]) taken(o O) string {
	if s := w.registered(); s != nil {
		return s.TakenNameOfLocal(w.kind, o.GetName(), w.handler)
	}
	return ""
}

// validate returns the mistakes in an object besides errs.
func (w locals[O]) validate(o O, errs field.ErrorList) error {
	_, more := w.compile(o)
	if errs = append(errs, more...); len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(w.kind).GroupKind(), o.GetName(), problems.Bound(errs))
}
