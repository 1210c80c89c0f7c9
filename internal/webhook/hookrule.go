// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/hookrule"
	"github.com/hookgate/hookgate/internal/problems"
	"github.com/hookgate/hookgate/registry"
)

// hookRules compiles HookRules, and checks that no new one has a name that is taken.
type hookRules struct {
	compiler *hookrule.Compiler
	// registered returns what the registry has, or nil.
	registered func() *registry.Snapshot
}

var _ admission.Validator[*v1alpha1.HookRule] = hookRules{}

// ValidateCreate checks a new HookRule.
func (w hookRules) ValidateCreate(_ context.Context, r *v1alpha1.HookRule) (admission.Warnings, error) {
	var errs field.ErrorList
	if taken := w.taken(r); taken != "" {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), r.Name,
			"is "+taken+", too: choose another name"))
	}
	return nil, w.validate(r, errs)
}

// ValidateUpdate checks the new state of a HookRule. It allows one that is being deleted, and one whose spec stays.
func (w hookRules) ValidateUpdate(_ context.Context, before, r *v1alpha1.HookRule) (admission.Warnings, error) {
	if !r.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Spec, r.Spec) {
		return nil, nil
	}
	if err := w.validate(r, nil); err != nil {
		return nil, err
	}
	if taken := w.taken(r); taken != "" {
		return admission.Warnings{"metadata.name: is " + taken + ", too: one of the two is not served"}, nil
	}
	return nil, nil
}

// ValidateDelete allows every deletion.
func (hookRules) ValidateDelete(context.Context, *v1alpha1.HookRule) (admission.Warnings, error) {
	return nil, nil
}

// taken says what else the name of a rule means; nothing if it is free.
func (w hookRules) taken(r *v1alpha1.HookRule) string {
	if s := w.registered(); s != nil {
		return s.TakenNameOfLocal(hookrule.Kind, r.Name, hookrule.HandlerName)
	}
	return ""
}

// validate returns the mistakes in a HookRule besides errs.
func (w hookRules) validate(r *v1alpha1.HookRule, errs field.ErrorList) error {
	_, more := w.compiler.Compile(r)
	if errs = append(errs, more...); len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(hookrule.Kind).GroupKind(), r.Name, problems.Bound(errs))
}
