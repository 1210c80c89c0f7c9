// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// extensionConfigs applies the defaults and the rules of ExtensionConfigs: the rules of Cluster API, and the rule that
// no ExtensionConfig calls this gateway, has the name of another object, or is deleted while an ExtensionRollout needs
// it.
type extensionConfigs struct {
	group string
	own   extensionconfig.Addresses
	hooks *catalog.Catalog
	// registered returns what the registry has, or nil.
	registered func() *registry.Snapshot
}

var (
	_ admission.Defaulter[*runtimev1.ExtensionConfig] = extensionConfigs{}
	_ admission.Validator[*runtimev1.ExtensionConfig] = extensionConfigs{}
)

// Default sets the defaults of Cluster API: a selector of all namespaces, and port 443 of a Service.
func (extensionConfigs) Default(_ context.Context, config *runtimev1.ExtensionConfig) error {
	if config.Spec.NamespaceSelector == nil {
		config.Spec.NamespaceSelector = &metav1.LabelSelector{}
	}
	if service := &config.Spec.ClientConfig.Service; service.IsDefined() && service.Port == nil {
		service.Port = new(extensionconfig.DefaultPort)
	}
	return nil
}

// ValidateCreate checks a new ExtensionConfig. The API server has dropped its status before; see creation.
func (w extensionConfigs) ValidateCreate(
	_ context.Context, config *runtimev1.ExtensionConfig,
) (admission.Warnings, error) {
	return warnings(nil, config), w.validate(config, w.nameTaken(config.Name))
}

// nameTaken returns an error if another object has the name of a new ExtensionConfig.
func (w extensionConfigs) nameTaken(name string) *field.Error {
	s := w.registered()
	if s == nil {
		return nil
	}
	taken := s.TakenByLocal(name)
	if c, ok := s.Chain(name); ok {
		taken = "the name of " + c.String()
	}
	if of, ok := s.Rollout(name); ok && of.Stable != name && of.Candidate != name {
		taken = "the name of " + of.String()
	}
	if taken == "" {
		return nil
	}
	return field.Invalid(field.NewPath("metadata", "name"), name, "is "+taken+": choose another name")
}

// ValidateUpdate checks the new state of an ExtensionConfig. It allows one that is being deleted, and one whose spec
// stays, which may have been stored before there was a rule. Known handlers count while clientConfig stays.
func (w extensionConfigs) ValidateUpdate(
	ctx context.Context, before, config *runtimev1.ExtensionConfig,
) (admission.Warnings, error) {
	if !config.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	// An object stored before there were defaults gets them with this update, which is no change.
	before = before.DeepCopy()
	if err := w.Default(ctx, before); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(before.Spec, config.Spec) {
		_, outdated := extensionconfig.HookVersions(config, w.hooks)
		return append(warnings(before, config), outdated...), nil
	}
	var removed *field.Error
	var outdated []string
	if equality.Semantic.DeepEqual(before.Spec.ClientConfig, config.Spec.ClientConfig) {
		removed, outdated = extensionconfig.HookVersions(config, w.hooks)
	}
	return append(warnings(before, config), outdated...), w.validate(config, removed)
}

// ValidateDelete refuses the deletion of a member of an ExtensionRollout, whose Clusters nothing would answer for.
func (w extensionConfigs) ValidateDelete(
	_ context.Context, config *runtimev1.ExtensionConfig,
) (admission.Warnings, error) {
	s := w.registered()
	if s == nil {
		return nil, nil
	}
	of, ok := s.MemberOf(config.Name)
	if !ok || of.Stable != config.Name && of.Candidate != config.Name {
		return nil, nil
	}
	resource := schema.GroupResource{Group: w.group, Resource: "extensionconfigs"}
	return nil, apierrors.NewForbidden(resource, config.Name, fmt.Errorf("%s uses this ExtensionConfig: first "+
		"set another ExtensionConfig in the ExtensionRollout, or delete the ExtensionRollout", of))
}

// validate checks an ExtensionConfig. more, which may be nil, is one more error.
func (w extensionConfigs) validate(config *runtimev1.ExtensionConfig, more *field.Error) error {
	x, errs := extensionconfig.Convert(config)
	if len(errs) == 0 {
		if err := w.own.Check(x.ClientConfig.URL); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "clientConfig"), err.Error()))
		}
	}
	if more != nil {
		errs = append(errs, more)
	}
	if len(errs) == 0 {
		return nil
	}
	kind := schema.GroupKind{Group: w.group, Kind: "ExtensionConfig"}
	return apierrors.NewInvalid(kind, config.Name, problems.Bound(errs))
}
