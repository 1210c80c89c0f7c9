// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
)

// creation sets defaults, and checks the known handlers of an ExtensionConfig that is created with a status, as from
// a backup. The API server drops that status after defaulting and before validation, so no other webhook sees it.
type creation struct {
	defaults admission.Handler
	decoder  admission.Decoder
	configs  extensionConfigs
}

var _ admission.Handler = creation{}

func newCreation(scheme *runtime.Scheme, configs extensionConfigs) *admission.Webhook {
	return &admission.Webhook{Handler: creation{
		defaults: admission.WithDefaulter[*runtimev1.ExtensionConfig](scheme, configs).Handler,
		decoder:  admission.NewDecoder(scheme), configs: configs,
	}}
}

// Handle implements admission.Handler.
func (c creation) Handle(ctx context.Context, request admission.Request) admission.Response {
	response := c.defaults.Handle(ctx, request)
	if !response.Allowed || request.Operation != admissionv1.Create {
		return response
	}
	config := &runtimev1.ExtensionConfig{}
	if err := c.decoder.Decode(request, config); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	removed, outdated := extensionconfig.HookVersions(config, c.configs.hooks)
	if removed != nil {
		kind := schema.GroupKind{Group: c.configs.group, Kind: "ExtensionConfig"}
		status := apierrors.NewInvalid(kind, config.Name, field.ErrorList{removed}).Status()
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: false, Result: &status}}
	}
	return response.WithWarnings(outdated...)
}
