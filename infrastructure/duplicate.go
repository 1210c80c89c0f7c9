// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// externalIDIndex is the name of the indexes of objects by their externalID.
const externalIDIndex = "externalID"

// duplicate returns why an object must not be called about: another of its kind, which list is for, had its externalID
// first, as when a manifest was copied with what the controllers have written. Both would act on the same
// infrastructure, and deleting one object would delete the infrastructure of the other.
func (r *base) duplicate(
	ctx context.Context, o client.Object, externalID string, list client.ObjectList,
) (*block, error) {
	if externalID == "" {
		return nil, nil
	}
	if err := r.client.List(ctx, list, client.MatchingFields{externalIDIndex: externalID},
		client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list objects with externalID %q: %w", externalID, err)
	}
	first := o
	_ = meta.EachListItem(list, func(item runtime.Object) error { // fails only for what is no list
		if other, ok := item.(client.Object); ok && !unmanaged(other) && earlier(other, first) {
			first = other
		}
		return nil
	})
	if client.ObjectKeyFromObject(first) == client.ObjectKeyFromObject(o) {
		return nil, nil
	}
	return stops(infrav1.DuplicateExternalIDReason, fmt.Sprintf("the externalID %q already belongs to %s: delete %s, "+
		"and create it again without spec.externalID and spec.providerID", externalID,
		ownerKey{kindOf(o), client.ObjectKeyFromObject(first)}, ownerKey{kindOf(o), client.ObjectKeyFromObject(o)})), nil
}

// earlier reports whether an object was created before another. Of those of the same second, the first by name was.
func earlier(a, b client.Object) bool {
	return cmp.Or(
		a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
		cmp.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())) < 0
}

// releaseDuplicate removes the finalizer of an object without a call: what exists belongs to another object.
func (r *base) releaseDuplicate(ctx context.Context, o client.Object, finalizer string) error {
	return r.unfinalize(ctx, o, finalizer, notice{corev1.EventTypeNormal, deletedEvent, "Delete",
		"whatever exists in the backend with the externalID belongs to another object, and stays there"})
}
