// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

// plainTemplate is a template as many providers have it: Cluster API's contract does not ask for
// spec.template.metadata.
type plainTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Template struct {
			Spec map[string]any `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// stricts returns handlers that refuse templates with a member that their types lack, as many extensions do.
func stricts() []server.ExtensionHandler {
	return []server.ExtensionHandler{
		{
			Name: "strict-patches", Hook: runtimehooksv1.GeneratePatches,
			HandlerFunc: func(_ context.Context, q *runtimehooksv1.GeneratePatchesRequest, r *runtimehooksv1.GeneratePatchesResponse) {
				r.SetStatus(runtimehooksv1.ResponseStatusSuccess)
				for i := range q.Items {
					patch, err := strictly(q.Items[i].Object)
					if err != nil {
						refuse(r, err)
						return
					}
					r.Items = append(r.Items, runtimehooksv1.GeneratePatchesResponseItem{
						UID: q.Items[i].UID, PatchType: runtimehooksv1.JSONPatchType, Patch: patch,
					})
				}
			},
		},
		{
			Name: "strict-topology", Hook: runtimehooksv1.ValidateTopology,
			HandlerFunc: func(_ context.Context, q *runtimehooksv1.ValidateTopologyRequest, r *runtimehooksv1.ValidateTopologyResponse) {
				r.SetStatus(runtimehooksv1.ResponseStatusSuccess)
				for i := range q.Items {
					if _, err := strictly(q.Items[i].Object); err != nil {
						refuse(r, err)
						return
					}
				}
			},
		},
	}
}

// command is what a strict handler adds to the commands of control planes, so that a test finds it there.
const command = "echo decoded by v1.12"

// strictly decodes a template, and returns a patch that writes all of its spec.template anew.
func strictly(object runtime.RawExtension) ([]byte, error) {
	var of metav1.TypeMeta
	if err := json.Unmarshal(object.Raw, &of); err != nil {
		return nil, err
	}
	var template any
	switch of.Kind {
	case "KubeadmControlPlaneTemplate":
		template = &controlplanev1.KubeadmControlPlaneTemplate{}
	case "KubeadmConfigTemplate":
		template = &bootstrapv1.KubeadmConfigTemplate{}
	default:
		template = &plainTemplate{}
	}
	d := json.NewDecoder(bytes.NewReader(object.Raw))
	d.DisallowUnknownFields()
	if err := d.Decode(template); err != nil {
		return nil, fmt.Errorf("decode %s: %w", of.Kind, err)
	}
	if t, ok := template.(*controlplanev1.KubeadmControlPlaneTemplate); ok {
		config := &t.Spec.Template.Spec.KubeadmConfigSpec
		config.PreKubeadmCommands = append(config.PreKubeadmCommands, command)
	}
	decoded, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	var parts struct {
		Spec struct {
			Template map[string]any `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(decoded, &parts); err != nil {
		return nil, err
	}
	if spec, ok := parts.Spec.Template["spec"].(map[string]any); ok && of.Kind == "AcmeClusterTemplate" {
		spec["region"] = "north"
	}
	return json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec/template", "value": parts.Spec.Template}})
}
