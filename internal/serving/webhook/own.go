// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/kinds"
)

// OwnPath returns the path of the validating webhook for a kind of Hookgate's own.
func OwnPath(kind string) string {
	return Path("validate", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, strings.ToLower(kind))
}

// own applies the rules of a kind of Hookgate's own, including those that a schema cannot express.
type own struct{ kinds.Rules }

var _ admission.Validator[runtime.Object] = own{}

// newOwn returns the webhook for a kind of Hookgate's own.
func newOwn(scheme *runtime.Scheme, rules kinds.Rules) *admission.Webhook {
	//nolint:staticcheck // what replaces it has to know the type of the objects when it is compiled
	return admission.WithCustomValidator(scheme, rules.New(), own{rules})
}

// ValidateCreate checks a new object.
func (w own) ValidateCreate(_ context.Context, o runtime.Object) (admission.Warnings, error) {
	now := o.(kinds.Object)
	warnings, errs := w.Admit(nil, now)
	return warnings, w.refuse(now, errs)
}

// ValidateUpdate checks the new state of an object. It allows one that is being deleted, and one whose spec stays.
func (w own) ValidateUpdate(_ context.Context, old, o runtime.Object) (admission.Warnings, error) {
	before, now := old.(kinds.Object), o.(kinds.Object)
	if !now.GetDeletionTimestamp().IsZero() || equality.Semantic.DeepEqual(kinds.SpecOf(before), kinds.SpecOf(now)) {
		return nil, nil
	}
	warnings, errs := w.Admit(before, now)
	return warnings, w.refuse(now, errs)
}

// ValidateDelete allows every deletion that the kind allows.
func (w own) ValidateDelete(_ context.Context, o runtime.Object) (admission.Warnings, error) {
	if w.Keeps == nil {
		return nil, nil
	}
	now := o.(kinds.Object)
	if err := w.Keeps(now); err != nil {
		of, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion.WithKind(w.Name))
		return nil, apierrors.NewForbidden(of.GroupResource(), now.GetName(), err)
	}
	return nil, nil
}

// refuse returns the error for the mistakes in an object, or nil without any.
func (w own) refuse(o kinds.Object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(w.Name).GroupKind(), o.GetName(), problems.Bound(errs))
}
