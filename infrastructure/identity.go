// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// newExternalID returns an id that was never used: the name of the object, for people to recognize, and at least 128
// random bits.
func newExternalID(name string) string {
	random := strings.ToLower(rand.Text())
	const most = 30
	name = strings.Trim(strings.ReplaceAll(name, ".", "-"), "-")
	if len(name) > most {
		name = strings.TrimRight(name[:most], "-")
	}
	if id := name + "-" + random; len(validation.IsDNS1123Label(id)) == 0 {
		return id
	}
	return random
}

// identify stores the finalizer and the externalID of an object, in one patch, before anything is called. It returns
// the object as it is stored, which may be the given one.
func identify[T client.Object](
	ctx context.Context, r *base, o T, finalizer string, externalID func(T) *string, annotations map[string]string,
) (T, error) {
	after, ok := o.DeepCopyObject().(T)
	if !ok {
		return o, fmt.Errorf("copy %T", o)
	}
	controllerutil.AddFinalizer(after, finalizer)
	if id := externalID(after); *id == "" {
		*id = newExternalID(o.GetName())
	}
	recorded := after.GetAnnotations()
	if recorded == nil {
		recorded = map[string]string{}
	}
	for key, value := range annotations {
		if value == "" {
			delete(recorded, key)
			continue
		}
		recorded[key] = value
	}
	if len(recorded) > 0 {
		after.SetAnnotations(recorded)
	}
	main, _, err := difference(o, after)
	if err != nil || main == nil {
		return o, err
	}
	if err := r.client.Patch(ctx, after, client.RawPatch(types.MergePatchType, main)); err != nil {
		return o, fmt.Errorf("store the externalID of %s: %w", client.ObjectKeyFromObject(o), err)
	}
	return after, nil
}

// recordOf returns the annotations by which a machine or pool finds its extension without its cluster.
func recordOf(w *scope) map[string]string {
	record := map[string]string{
		infrav1.ClassAnnotation: w.className, infrav1.ClusterExternalIDAnnotation: w.clusterExternalID,
		infrav1.CredentialsAnnotation: "", infrav1.IdentityAnnotation: w.identityName,
	}
	if w.infra != nil && w.infra.Spec.CredentialsRef != nil {
		record[infrav1.CredentialsAnnotation] = w.infra.Spec.CredentialsRef.Name
	}
	return record
}

// release removes a finalizer: what the object stands for is gone.
func (r *base) release(ctx context.Context, o client.Object, finalizer string) error {
	return r.unfinalize(ctx, o, finalizer,
		notice{corev1.EventTypeNormal, deletedEvent, "Delete", "nothing is left in the backend"})
}

// unfinalize removes a finalizer, and says why in an event.
func (r *base) unfinalize(ctx context.Context, o client.Object, finalizer string, why notice) error {
	after, _ := o.DeepCopyObject().(client.Object)
	if !controllerutil.RemoveFinalizer(after, finalizer) {
		return nil
	}
	if err := client.IgnoreNotFound(r.write(ctx, o, after)); err != nil {
		return err
	}
	r.events.record(o, why)
	return nil
}

// abandoned reports whether an object asks to be removed without another call.
func abandoned(o client.Object, externalID string) bool {
	return externalID != "" && o.GetAnnotations()[infrav1.AbandonAnnotation] == externalID
}

func hasFinalizer(o client.Object, finalizer string) bool {
	return slices.Contains(o.GetFinalizers(), finalizer)
}
