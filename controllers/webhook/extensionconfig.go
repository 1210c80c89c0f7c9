// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers/extensionconfig"
)

// extensionConfigs has the defaults and the rules of ExtensionConfigs: Cluster API's, and that none calls this gateway.
type extensionConfigs struct {
	group string
	own   extensionconfig.Addresses
	hooks *catalog.Catalog
}

var (
	_ admission.Defaulter[*runtimev1.ExtensionConfig] = extensionConfigs{}
	_ admission.Validator[*runtimev1.ExtensionConfig] = extensionConfigs{}
)

// Default sets what is meant where nothing is said: every namespace, and port 443 of a Service.
func (extensionConfigs) Default(_ context.Context, config *runtimev1.ExtensionConfig) error {
	if config.Spec.NamespaceSelector == nil {
		config.Spec.NamespaceSelector = &metav1.LabelSelector{}
	}
	if service := &config.Spec.ClientConfig.Service; service.IsDefined() && service.Port == nil {
		service.Port = new(extensionconfig.DefaultPort)
	}
	return nil
}

// ValidateCreate checks a new ExtensionConfig. The API server has taken its status away before it asks; see creation.
func (w extensionConfigs) ValidateCreate(_ context.Context, config *runtimev1.ExtensionConfig) (admission.Warnings, error) {
	return unwise(nil, config), w.validate(config, nil)
}

// ValidateUpdate checks what an ExtensionConfig is changed to. One that is being deleted, and one whose spec stays, passes: it
// may have been stored before there was a rule. Known handlers count as long as it calls the extension that has them.
func (w extensionConfigs) ValidateUpdate(ctx context.Context, before, config *runtimev1.ExtensionConfig) (admission.Warnings, error) {
	if !config.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	// One that was stored before there were defaults has got them with this update, which is no change.
	before = before.DeepCopy()
	if err := w.Default(ctx, before); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(before.Spec, config.Spec) {
		_, outdated := extensionconfig.HookVersions(config, w.hooks)
		return append(unwise(before, config), outdated...), nil
	}
	var removed *field.Error
	var outdated []string
	if equality.Semantic.DeepEqual(before.Spec.ClientConfig, config.Spec.ClientConfig) {
		removed, outdated = extensionconfig.HookVersions(config, w.hooks)
	}
	return append(unwise(before, config), outdated...), w.validate(config, removed)
}

// ValidateDelete allows every deletion.
func (extensionConfigs) ValidateDelete(context.Context, *runtimev1.ExtensionConfig) (admission.Warnings, error) {
	return nil, nil
}

// validate checks an ExtensionConfig. removed, if it is not nil, is what is wrong with its known handlers.
func (w extensionConfigs) validate(config *runtimev1.ExtensionConfig, removed *field.Error) error {
	x, errs := extensionconfig.Convert(config)
	if len(errs) == 0 {
		if err := w.own.Check(x.ClientConfig.URL); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "clientConfig"), err.Error()))
		}
	}
	if removed != nil {
		errs = append(errs, removed)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: w.group, Kind: "ExtensionConfig"}, config.Name, errs)
}
