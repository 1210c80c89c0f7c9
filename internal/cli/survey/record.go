// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// The annotations of a Deployment that deploy/upgrade-guard reads.
const (
	// approvedAnnotation and the component have the release, such as v1.14, whose upgrade breaks nothing, and
	// refusedAnnotation what the upgrade that was judged last would break.
	approvedAnnotation = "hookgate.dev/approved-"
	refusedAnnotation  = "hookgate.dev/refused-"
	// untilAnnotation is the time until which an approval counts, and registrationsAnnotation what it is about.
	untilAnnotation         = "hookgate.dev/approved-until"
	registrationsAnnotation = "hookgate.dev/approved-registrations"
)

const (
	// approvalAge is how long an approval counts. It sees changed registrations, but not a new build of an extension
	// behind the same one; and a day is enough for a window of maintenance after a review.
	approvalAge = 24 * time.Hour
	// maxRegistrations is the size of the names of the registrations in an approval: an object may have annotations of
	// 256 KiB.
	maxRegistrations = 200 << 10
)

// deploymentKind is the kind of what runs Cluster API core and the gateway.
var deploymentKind = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// Verdict is what an upgrade of a component means.
type Verdict struct {
	// Component is preflight.ClusterAPI or preflight.Gateway, and Release the one to come.
	Component, Release string
	// Refused says what would break; empty if nothing does.
	Refused string
	// Registrations are those that were judged.
	Registrations []string
}

// annotations returns the annotations of a verdict at a time; nil removes one.
func (v *Verdict) annotations(now time.Time) map[string]any {
	if v.Refused != "" {
		return map[string]any{
			approvedAnnotation + v.Component: nil, untilAnnotation: nil, registrationsAnnotation: nil,
			refusedAnnotation + v.Component: redact.Bounded(v.Refused, limits.EventNoteBytes),
		}
	}
	return map[string]any{
		approvedAnnotation + v.Component: v.Release, refusedAnnotation + v.Component: nil,
		untilAnnotation:         now.Add(approvalAge).UTC().Format(time.RFC3339),
		registrationsAnnotation: strings.Join(v.Registrations, ","),
	}
}

// Record records a verdict at the Deployment of the component, in place of an earlier one, and returns the name of the
// Deployment: the release is approved for approvalAge, or it is refused.
func (c *Cluster) Record(ctx context.Context, v Verdict) (deployment string, err error) {
	provider := "cluster-api"
	if v.Component == preflight.Gateway {
		provider = "runtime-extension-hookgate"
	}
	if size := len(strings.Join(v.Registrations, ",")); size > maxRegistrations {
		return "", fmt.Errorf("the names of %d registrations take up %d bytes in total, but an approval has room for "+
			"only %d bytes: annotate the Deployment with %s%s=any instead",
			len(v.Registrations), size, maxRegistrations, approvedAnnotation, v.Component)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(deploymentKind.GroupVersion().WithKind(deploymentKind.Kind + "List"))
	err = c.list(ctx, list, "deployments", deploymentKind.Group,
		client.MatchingLabels{clusterv1.ProviderNameLabel: provider})
	switch {
	case err != nil:
		return "", err
	case len(list.Items) != 1:
		return "", fmt.Errorf("want one Deployment with the label %s=%s; there are %d",
			clusterv1.ProviderNameLabel, provider, len(list.Items))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": v.annotations(time.Now())}})
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
