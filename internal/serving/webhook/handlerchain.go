// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// handlerChains applies the rules of HandlerChains, including those that a schema cannot express, and that no new one
// has a name that is taken.
type handlerChains struct {
	hooks *catalog.Catalog
	// registered returns what the registry has, or nil.
	registered func() *registry.Snapshot
}

var _ admission.Validator[*v1alpha1.HandlerChain] = handlerChains{}

// ValidateCreate checks a new HandlerChain.
func (w handlerChains) ValidateCreate(_ context.Context, c *v1alpha1.HandlerChain) (admission.Warnings, error) {
	var errs field.ErrorList
	if s := w.registered(); s != nil {
		if taken := s.TakenName(c.Name); taken != "" {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), c.Name,
				"is "+taken+", too: choose another name"))
		}
	}
	return w.validate(c, errs)
}

// ValidateUpdate checks the new state of a HandlerChain. It allows one that is being deleted, and one whose spec stays.
func (w handlerChains) ValidateUpdate(
	_ context.Context, before, c *v1alpha1.HandlerChain,
) (admission.Warnings, error) {
	if !c.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Spec, c.Spec) {
		return nil, nil
	}
	return w.validate(c, nil)
}

// ValidateDelete allows every deletion.
func (handlerChains) ValidateDelete(context.Context, *v1alpha1.HandlerChain) (admission.Warnings, error) {
	return nil, nil
}

// validate returns the mistakes in a HandlerChain besides errs, and a warning about steps that cannot be called yet.
func (w handlerChains) validate(c *v1alpha1.HandlerChain, errs field.ErrorList) (admission.Warnings, error) {
	chain, more := extensionconfig.ConvertChain(c, w.hooks)
	if errs = append(errs, more...); len(errs) > 0 {
		return nil, apierrors.NewInvalid(
			v1alpha1.GroupVersion.WithKind("HandlerChain").GroupKind(), c.Name, problems.Bound(errs))
	}
	s := w.registered()
	if s == nil || !s.Ready() {
		return nil, nil
	}
	if taken := s.Taken(&chain); taken != "" {
		return admission.Warnings{"metadata.name: is " + taken + ", too, so that calls of the chain fail"}, nil
	}
	var warnings admission.Warnings
	if _, err := s.StepsOf(&chain); err != nil {
		for line := range strings.SplitSeq(err.Error(), "\n") {
			warnings = append(warnings, "spec."+line+"; calls of the chain fail meanwhile")
		}
	}
	if more := len(warnings) - limits.Problems; more > 0 {
		warnings = append(warnings[:limits.Problems], fmt.Sprintf("spec.steps: %d more cannot be called", more))
	}
	return warnings, nil
}
