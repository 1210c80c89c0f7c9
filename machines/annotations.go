// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The annotations of Machines and Clusters.
const (
	// DrainAnnotation makes Cluster API wait before it drains the Node of a Machine, and TerminateAnnotation before it
	// deletes its infrastructure.
	DrainAnnotation     = clusterv1.PreDrainDeleteHookAnnotationPrefix + "/" + hookgate
	TerminateAnnotation = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/" + hookgate
	// ProvisionedAnnotation is on a Machine whose handlers of AfterMachineProvisioned have been told.
	ProvisionedAnnotation = "hooks.machines.hookgate.dev/provisioned"
	// ReleasedAnnotation on a Cluster keeps the first two off its Machines, as if no handler matched.
	ReleasedAnnotation = "machines.hookgate.dev/released"

	hookgate = "hookgate"
)

// annotate sets annotations of an object, and removes those whose value is nil. With strict, it fails with a conflict
// if the object is not as it was read.
func annotate(ctx context.Context, c client.Client, o client.Object, values map[string]any, strict bool) error {
	metadata := map[string]any{"annotations": values}
	if strict {
		metadata["resourceVersion"] = o.GetResourceVersion()
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("write annotations: %w", err)
	}
	// The object that was read stays as it is: it may be the cache's.
	return c.Patch(ctx, o.DeepCopyObject().(client.Object), //nolint:forcetypeassert // it is one
		client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner))
}

// fieldOwner is the field manager of what the controllers write.
const fieldOwner = "hookgate-machines"
