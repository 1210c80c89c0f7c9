// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1beta1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta1"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/desiredstate"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/conversion"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/difference"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/topology"
)

// kubeadmControlPlane returns what makes the Machines of a KubeadmControlPlane out of date.
func (c *comparison) kubeadmControlPlane(
	ctx context.Context, x *topology.Object, was *unstructured.Unstructured,
) (*update, error) {
	var before, after controlplanev1.KubeadmControlPlane
	if err := decodeKubeadmControlPlane(ctx, was, &before); err != nil {
		return nil, err
	}
	if err := decodeKubeadmControlPlane(ctx, x.Unstructured, &after); err != nil {
		return nil, err
	}
	u := &update{}
	if before.Spec.Version != after.Spec.Version {
		u.reasons = append(u.reasons, fmt.Sprintf("Version %s, %s required", before.Spec.Version, after.Spec.Version))
	}
	current, desired, err := c.kubeadmConfigs(&before, &after, true)
	if err != nil {
		return nil, err
	}
	first, firstDesired, err := c.kubeadmConfigs(&before, &after, false)
	if err != nil {
		return nil, err
	}
	switch {
	case !equality.Semantic.DeepEqual(current.Spec, desired.Spec):
		u.reasons = append(u.reasons, "KubeadmConfig is not up-to-date")
	case !equality.Semantic.DeepEqual(first.Spec, firstDesired.Spec):
		u.reasons = append(u.reasons, "KubeadmConfig of the Machine that was made by kubeadm init is not up-to-date")
	}
	if role := x.Role + topology.PartInfrastructure; difference.SpecOf(c.differences, role) {
		u.reasons = append(u.reasons, infrastructureKind(c.now.Object(role))+" is not up-to-date")
	}
	if len(u.reasons) == 0 {
		return nil, nil
	}
	u.ask = func(ctx context.Context) (bool, string, error) {
		return c.askMachine(ctx, &before, &after, current, desired)
	}
	return u, nil
}

// decodeKubeadmControlPlane decodes a KubeadmControlPlane, which may be of v1beta1.
func decodeKubeadmControlPlane(
	ctx context.Context, o *unstructured.Unstructured, into *controlplanev1.KubeadmControlPlane,
) error {
	if o.GroupVersionKind().Version == controlplanev1.GroupVersion.Version {
		return fromUnstructured(o, into)
	}
	var old controlplanev1beta1.KubeadmControlPlane
	if err := fromUnstructured(o, &old); err != nil {
		return err
	}
	return conversion.ConvertKubeadmControlPlaneV1Beta1ToHub(ctx, &old, into)
}

// kubeadmConfigs returns what a Machine's configuration is made of before and after, without what needs no new Machine.
func (c *comparison) kubeadmConfigs(
	before, after *controlplanev1.KubeadmControlPlane, join bool,
) (current, desired *bootstrapv1.KubeadmConfig, err error) {
	if current, err = desiredstate.ComputeDesiredKubeadmConfig(before, c.now.Cluster, join, before.Name, nil); err != nil {
		return nil, nil, err
	}
	if desired, err = desiredstate.ComputeDesiredKubeadmConfig(after, c.now.Cluster, join, before.Name, nil); err != nil {
		return nil, nil, err
	}
	desired, current = pkg.PrepareKubeadmConfigsForDiff(desired, current, join)
	return current, desired, nil
}
