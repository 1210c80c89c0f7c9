// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// identities applies the rules of HookgateClusterIdentities.
type identities struct{}

var _ admission.Validator[*v1alpha1.HookgateClusterIdentity] = identities{}

// ValidateCreate checks a new identity.
func (identities) ValidateCreate(_ context.Context, i *v1alpha1.HookgateClusterIdentity) (admission.Warnings, error) {
	return nil, refusal(v1alpha1.HookgateClusterIdentityKind, i.Name, allowedProblems(i.Spec.AllowedNamespaces))
}

// ValidateUpdate checks the new state of an identity. It allows one that is being deleted, and one whose spec stays.
func (w identities) ValidateUpdate(
	ctx context.Context, before, i *v1alpha1.HookgateClusterIdentity,
) (admission.Warnings, error) {
	if !i.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(before.Spec, i.Spec) {
		return nil, nil
	}
	return w.ValidateCreate(ctx, i)
}

// ValidateDelete allows every deletion: the controllers keep an identity until no object uses it.
func (identities) ValidateDelete(context.Context, *v1alpha1.HookgateClusterIdentity) (admission.Warnings, error) {
	return nil, nil
}
