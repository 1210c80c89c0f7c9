// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/infrastructure/parameters"
	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// classes applies the rules of InfrastructureClasses.
type classes struct{ schemas *parameters.Cache }

var _ admission.Validator[*v1alpha1.InfrastructureClass] = classes{}

// ValidateCreate checks a new class.
func (w classes) ValidateCreate(ctx context.Context, c *v1alpha1.InfrastructureClass) (admission.Warnings, error) {
	return nil, refusal(v1alpha1.InfrastructureClassKind, c.Name, w.problems(ctx, c))
}

// ValidateUpdate checks the new state of a class. It allows one that is being deleted, and one whose spec stays.
func (w classes) ValidateUpdate(
	ctx context.Context, before, c *v1alpha1.InfrastructureClass,
) (admission.Warnings, error) {
	if !c.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Spec, c.Spec) {
		return nil, nil
	}
	return w.ValidateCreate(ctx, c)
}

// ValidateDelete allows every deletion: objects of the class keep what they have, and wait for a class of that name.
func (classes) ValidateDelete(context.Context, *v1alpha1.InfrastructureClass) (admission.Warnings, error) {
	return nil, nil
}

// problems returns the problems of the spec of a class.
func (w classes) problems(ctx context.Context, c *v1alpha1.InfrastructureClass) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, allowedProblems(c.Spec.AllowedNamespaces)...)
	at, d, s := specPath.Child("defaultParameters"), c.Spec.DefaultParameters, c.Status.Schemas
	errs = append(errs, w.defaults(ctx, c, at.Child("cluster"), raw(d.Cluster), raw(s.Cluster))...)
	errs = append(errs, w.defaults(ctx, c, at.Child("machine"), raw(d.Machine), raw(s.Machine))...)
	return append(errs, w.defaults(ctx, c, at.Child("machinePool"), raw(d.MachinePool), raw(s.MachinePool))...)
}

// allowedProblems returns the problems of spec.allowedNamespaces, which may be nil.
func allowedProblems(a *v1alpha1.AllowedNamespaces) field.ErrorList {
	if a == nil {
		return nil
	}
	return metav1validation.ValidateLabelSelector(a.Selector, metav1validation.LabelSelectorValidationOptions{},
		specPath.Child("allowedNamespaces", "selector"))
}

// defaults checks default parameters, which need not be complete.
func (w classes) defaults(
	ctx context.Context, c *v1alpha1.InfrastructureClass, at *field.Path, defaults, announced []byte,
) field.ErrorList {
	errs := parameters.Check(at, defaults)
	if len(errs) > 0 || len(defaults) == 0 || !c.Announced() {
		return errs
	}
	schema, err := w.schemas.Compile(announced)
	if err != nil {
		return nil
	}
	return schema.ValidatePartly(ctx, at, defaults)
}
