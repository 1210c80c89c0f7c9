// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// identities reconciles HookgateClusterIdentities: it says whether their credentials can be used, makes clusterctl move
// take them along, and keeps them until no object uses them. It calls no extension.
type identities struct{ *base }

// Reconcile implements reconcile.Reconciler.
func (r *identities) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	i := &infrav1.HookgateClusterIdentity{}
	if err := r.client.Get(ctx, req.NamespacedName, i); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.watched(i) {
		return reconcile.Result{}, nil
	}
	desired := i.DeepCopy()
	cause := pausedBy(nil, i)
	setPaused(desired, cause)
	switch {
	case cause != "":
		return reconcile.Result{}, r.write(ctx, i, desired)
	case !i.DeletionTimestamp.IsZero():
		return r.delete(ctx, i, desired)
	}
	controllerutil.AddFinalizer(desired, infrav1.IdentityFinalizer)
	if b, err := r.usable(ctx, i); err != nil {
		return reconcile.Result{}, err
	} else if b != nil {
		set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, b.reason, b.message)
		return later(jitter(credentialsAge)), r.write(ctx, i, desired)
	}
	set(desired, infrav1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
	stays, err := r.adopt(ctx, i)
	if err != nil {
		return reconcile.Result{}, err
	}
	setMovable(desired, stays)
	return reconcile.Result{}, r.write(ctx, i, desired)
}

// usable returns why the credentials of an identity cannot be used; nil if they can.
func (r *identities) usable(ctx context.Context, i *infrav1.HookgateClusterIdentity) (*block, error) {
	if _, err := i.Spec.AllowedNamespaces.Allow("", nil); err != nil {
		return stops(infrav1.NamespaceNotAllowedReason, err.Error()), nil
	}
	_, b, err := r.secrets.credentials(ctx, r.secretOf(i))
	return b, err
}

// adopt makes an identity an owner of its Secret: clusterctl move takes along what something owns that it takes along.
// It returns why the Secret stays behind, and an empty text if it does not.
func (r *identities) adopt(ctx context.Context, i *infrav1.HookgateClusterIdentity) (string, error) {
	name := r.secretOf(i)
	secret := secretMetadata()
	if err := r.live.Get(ctx, *name, secret); apierrors.IsNotFound(err) {
		return "", nil // its deletion causes another look
	} else if err != nil {
		return "", fmt.Errorf("read Secret %s: %w", name, err)
	}
	owners := secret.OwnerReferences
	if slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == i.UID }) {
		return "", nil
	}
	if _, owner := movesWithCluster(secret); owner != "" {
		return staysWith(*name, owner), nil
	}
	owners = append(slices.Clone(owners), metav1.OwnerReference{
		APIVersion: infrav1.GroupVersion.String(), Kind: infrav1.HookgateClusterIdentityKind, Name: i.Name, UID: i.UID,
	})
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": owners, "resourceVersion": secret.ResourceVersion,
	}})
	if err != nil {
		return "", fmt.Errorf("own Secret %s: %w", name, err)
	}
	stays, err := r.secrets.mark(ctx, *name, patch, "make the identity an owner of the Secret: make it an owner yourself")
	return stays, client.IgnoreNotFound(err)
}

// delete releases an identity that no object uses. Until then, deletions need it.
func (r *identities) delete(
	ctx context.Context, i, desired *infrav1.HookgateClusterIdentity,
) (reconcile.Result, error) {
	if !hasFinalizer(i, infrav1.IdentityFinalizer) {
		return reconcile.Result{}, nil
	}
	user, err := r.user(ctx, infrav1.IdentityAnnotation, i.Name, identityOf)
	if err != nil {
		return reconcile.Result{}, err
	}
	if user == "" {
		return reconcile.Result{}, r.unfinalize(ctx, i, infrav1.IdentityFinalizer,
			notice{corev1.EventTypeNormal, deletedEvent, "Delete", "nothing uses it"})
	}
	set(desired, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.DeletingReason,
		"the identity is being deleted, but stays while objects use it, such as "+user)
	return later(jitter(poolInterval)), r.write(ctx, i, desired)
}

// identityOf returns the name of the identity of a HookgateCluster; it is empty without one.
func identityOf(c *infrav1.HookgateCluster) string {
	if c.Spec.IdentityRef == nil {
		return ""
	}
	return c.Spec.IdentityRef.Name
}

// secretOf names the Secret of an identity.
func (r *base) secretOf(i *infrav1.HookgateClusterIdentity) *types.NamespacedName {
	return &types.NamespacedName{Namespace: r.namespace, Name: i.Spec.CredentialsRef.Name}
}
