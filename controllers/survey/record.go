// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
)

// The annotations of Cluster API core's Deployment that deploy/upgrade-guard reads.
const (
	// ApprovedAnnotation has the release of Cluster API, such as v1.14, whose upgrade breaks nothing.
	ApprovedAnnotation = "hookgate.dev/approved-cluster-api"
	// RefusedAnnotation says what the upgrade that was judged last would break.
	RefusedAnnotation = "hookgate.dev/refused-cluster-api"
)

// deploymentKind is the kind of what runs Cluster API core.
var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// Record records a verdict at the Deployment of Cluster API core, in place of an earlier one, and returns the name of
// the Deployment: the release is approved, or it is refused if refused says why.
func (c *Cluster) Record(ctx context.Context, release, refused string) (deployment string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(deploymentKind.GroupVersion().WithKind(deploymentKind.Kind + "List"))
	err = c.list(ctx, list, "deployments", deploymentKind.Group,
		client.MatchingLabels{clusterv1.ProviderNameLabel: "cluster-api"})
	switch {
	case err != nil:
		return "", err
	case len(list.Items) != 1:
		return "", fmt.Errorf("want one Deployment with the label %s=cluster-api, which runs Cluster API core; there are %d",
			clusterv1.ProviderNameLabel, len(list.Items))
	}
	annotations := map[string]any{ApprovedAnnotation: release, RefusedAnnotation: nil}
	if refused != "" {
		annotations = map[string]any{ApprovedAnnotation: nil, RefusedAnnotation: text.Bounded(refused, limits.EventNoteBytes)}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return "", err
	}
	found := &list.Items[0]
	found.SetGroupVersionKind(deploymentKind)
	name := found.Namespace + "/" + found.Name
	err = c.client.Patch(ctx, found, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsForbidden(err) {
		return "", errors.New("patch deployments.apps: forbidden: grant the verb patch on Deployment " + name)
	}
	if err != nil {
		return "", fmt.Errorf("patch Deployment %s: %w", name, err)
	}
	return name, nil
}
