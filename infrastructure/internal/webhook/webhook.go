// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hookgate/hookgate/infrastructure/parameters"
	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/problems"
	"github.com/hookgate/hookgate/internal/serving/webhook"
)

// Path returns the path of the validating webhook for a kind.
func Path(kind string) string {
	return webhook.Path("validate", v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, strings.ToLower(kind))
}

// Config configures the webhooks. All fields are required.
type Config struct {
	// Reader reads InfrastructureClasses, HookgateClusterIdentities, HookgateClusters, Clusters and Namespaces; a cache
	// is enough.
	Reader client.Reader
	// Schemas are the schemas of parameters, which the controllers use as well.
	Schemas *parameters.Cache
	Logger  *slog.Logger
}

// New returns the handler of all webhooks. An edge.Side serves it.
func New(c Config) http.Handler {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme)) // fails for types that conflict, which would be a defect
	r := rules{lookup: lookup{reader: c.Reader, logger: c.Logger}, schemas: c.Schemas}
	return webhook.Admissions(map[string]http.Handler{
		Path(v1alpha1.InfrastructureClassKind): admission.WithValidator[*v1alpha1.InfrastructureClass](
			scheme, classes{schemas: c.Schemas}),
		Path(v1alpha1.HookgateClusterIdentityKind): admission.WithValidator[*v1alpha1.HookgateClusterIdentity](
			scheme, identities{}),
		Path(v1alpha1.HookgateClusterKind): admission.WithValidator(scheme,
			objects[*v1alpha1.HookgateCluster]{rules: r, view: viewCluster}),
		Path(v1alpha1.HookgateClusterTemplateKind): admission.WithValidator(scheme,
			objects[*v1alpha1.HookgateClusterTemplate]{rules: r, view: viewClusterTemplate}),
		Path(v1alpha1.HookgateMachineKind): admission.WithValidator(scheme,
			objects[*v1alpha1.HookgateMachine]{rules: r, view: viewMachine}),
		Path(v1alpha1.HookgateMachineTemplateKind): admission.WithValidator(scheme,
			objects[*v1alpha1.HookgateMachineTemplate]{rules: r, view: viewMachineTemplate}),
		Path(v1alpha1.HookgateMachinePoolKind): admission.WithValidator(scheme,
			objects[*v1alpha1.HookgateMachinePool]{rules: r, view: viewMachinePool}),
		Path(v1alpha1.HookgateMachinePoolTemplateKind): admission.WithValidator(scheme,
			objects[*v1alpha1.HookgateMachinePoolTemplate]{rules: r, view: viewMachinePoolTemplate}),
	}, c.Logger)
}

// objects applies the rules to the objects or templates of a kind.
type objects[T client.Object] struct {
	rules rules
	view  func(T) view
}

var _ admission.Validator[*v1alpha1.HookgateCluster] = objects[*v1alpha1.HookgateCluster]{}

// ValidateCreate checks a new object.
func (o objects[T]) ValidateCreate(ctx context.Context, object T) (admission.Warnings, error) {
	v := o.view(object)
	warnings, errs := o.rules.check(ctx, nil, v)
	return warnings, refusal(v.named(), object.GetName(), errs)
}

// ValidateUpdate checks the new state of an object. It allows one that is being deleted.
func (o objects[T]) ValidateUpdate(ctx context.Context, before, object T) (admission.Warnings, error) {
	if !object.GetDeletionTimestamp().IsZero() {
		return nil, nil
	}
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, err
	}
	old, v := o.view(before), o.view(object)
	errs := o.rules.immutable(old, v, request)
	warnings, more := o.rules.check(ctx, &old, v)
	return warnings, refusal(v.named(), object.GetName(), append(errs, more...))
}

// ValidateDelete allows every deletion.
func (objects[T]) ValidateDelete(context.Context, T) (admission.Warnings, error) { return nil, nil }

// refusal returns the error of an object with problems, or nil without any.
func refusal(kind, name string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), name, problems.Bound(errs))
}
