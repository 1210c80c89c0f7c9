// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
)

// extensionPolicies applies the rules of ExtensionPolicies, including those that a schema cannot express.
type extensionPolicies struct {
	compiler *policy.Compiler
	hooks    *catalog.Catalog
	types    *policy.Types
}

var _ admission.Validator[*v1alpha1.ExtensionPolicy] = extensionPolicies{}

// ValidateCreate checks a new ExtensionPolicy.
func (w extensionPolicies) ValidateCreate(_ context.Context, p *v1alpha1.ExtensionPolicy) (admission.Warnings, error) {
	converted, errs := extensionconfig.ConvertPolicy(p, w.compiler, w.hooks)
	if len(errs) == 0 { // the handlers may not be known yet, and are looked at by the source
		errs = converted.CheckConditions(w.types, nil)
	}
	var warnings admission.Warnings
	if seconds := p.Spec.TimeoutSeconds; seconds != nil && *seconds >= int32(limits.Timeout.Seconds()) {
		warnings = append(warnings, "spec.timeoutSeconds: Cluster API waits 30 s at most, the way through the "+
			"gateway included: less leaves time for the answer to arrive")
	}
	if len(errs) == 0 {
		return warnings, nil
	}
	return warnings, apierrors.NewInvalid(
		v1alpha1.GroupVersion.WithKind("ExtensionPolicy").GroupKind(), p.Name, problems.Bound(errs))
}

// ValidateUpdate checks the new state of an ExtensionPolicy. It allows one that is being deleted, and one whose spec
// stays.
func (w extensionPolicies) ValidateUpdate(
	ctx context.Context, before, p *v1alpha1.ExtensionPolicy,
) (admission.Warnings, error) {
	if !p.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Spec, p.Spec) {
		return nil, nil
	}
	return w.ValidateCreate(ctx, p)
}

// ValidateDelete allows every deletion.
func (extensionPolicies) ValidateDelete(context.Context, *v1alpha1.ExtensionPolicy) (admission.Warnings, error) {
	return nil, nil
}
