// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	controlplaneadmission "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/admission"
	coreadmission "sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// defaulters are Cluster API's webhooks that fill in values when the topology controller creates an object. Those of
// MachineHealthChecks have been asked already. Providers of infrastructure have their own, which are not here, nor
// are the defaults of CustomResourceDefinitions.
var defaulters = map[schema.GroupVersionKind]func(context.Context, []byte) (before, after any, err error){
	clusterv1.GroupVersion.WithKind("MachineDeployment"): defaulter((&coreadmission.MachineDeployment{}).Default),
	clusterv1.GroupVersion.WithKind("MachinePool"):       defaulter((&coreadmission.MachinePool{}).Default),
	controlplanev1.GroupVersion.WithKind("KubeadmControlPlane"): defaulter(
		(&controlplaneadmission.KubeadmControlPlane{}).Default),
}

// defaulter returns the entry of defaulters for a webhook.
func defaulter[T any](
	fill func(context.Context, *T) error,
) func(context.Context, []byte) (before, after any, err error) {
	return func(ctx context.Context, body []byte) (any, any, error) {
		before, after := new(T), new(T)
		for _, o := range []*T{before, after} {
			if err := json.Unmarshal(body, o); err != nil {
				return nil, nil, err
			}
		}
		return before, after, fill(ctx, after)
	}
}

// fillIn adds to a new object the values that webhooks fill in, and changes nothing else.
func fillIn(ctx context.Context, o *Object) error {
	fill, ok := defaulters[o.GroupVersionKind()]
	if !ok || !o.isNew {
		return nil
	}
	ctx = admission.NewContextWithRequest(ctx, admission.Request{
		AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create},
	})
	body, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	before, after, err := fill(ctx, body)
	if err != nil {
		return fmt.Errorf("default %s %q: %w", o.GetKind(), o.GetName(), err)
	}
	texts := [2][]byte{}
	for i, v := range []any{before, after} {
		if texts[i], err = json.Marshal(v); err != nil {
			return err
		}
	}
	patch, err := jsonpatch.CreateMergePatch(texts[0], texts[1])
	if err != nil {
		return err
	}
	if body, err = jsonpatch.MergePatch(body, patch); err != nil {
		return err
	}
	return o.UnmarshalJSON(body)
}
