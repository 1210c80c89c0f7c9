// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/parameters"
)

// CheckParameters returns an error if the request for a hook of infrastructure has parameters that the controllers
// would not send, because they do not match the schema that the extension announces. Deletions take every parameter.
func CheckParameters(
	ctx context.Context, hooks *catalog.Catalog, h *catalog.Hook, handler string, request proto.Message,
	call func(ctx context.Context, h *catalog.Hook, handler string, request proto.Message) (proto.Message, error),
) error {
	var announced func(*infrahooksv1alpha1.DiscoverInfrastructureResponse) *hooksv1alpha1.JSON
	switch request.(type) {
	case *infrahooksv1alpha1.ReconcileClusterRequest:
		announced = (*infrahooksv1alpha1.DiscoverInfrastructureResponse).GetClusterParameters
	case *infrahooksv1alpha1.ReconcileMachineRequest:
		announced = (*infrahooksv1alpha1.DiscoverInfrastructureResponse).GetMachineParameters
	case *infrahooksv1alpha1.ReconcileMachinePoolRequest:
		announced = (*infrahooksv1alpha1.DiscoverInfrastructureResponse).GetMachinePoolParameters
	default:
		return nil
	}
	discovery, ok := hooks.ByName("DiscoverInfrastructure")
	if !ok {
		return nil
	}
	_, extension, _ := strings.Cut(handler, ".") // a gateway adds it to the name
	a, err := call(ctx, discovery, extension, discovery.Request.New().Interface())
	if err != nil {
		return nil //nolint:nilerr // an extension that is still being written may have no discovery; the call shows the rest
	}
	answer, ok := a.(*infrahooksv1alpha1.DiscoverInfrastructureResponse)
	if !ok || !slices.ContainsFunc(answer.GetHandlers(), func(x *hooksv1alpha1.ExtensionHandler) bool {
		return x.GetRequestHook().GetHook() == h.Hook
	}) {
		return nil // the extension does not say that it has the hook, and so the controllers never call it
	}
	schema, err := parameters.Compile(announced(answer).GetRaw())
	if err != nil {
		return fmt.Errorf("compile the extension's schema for the parameters: %w", err)
	}
	subject := request.(interface {
		GetSubject() *infrahooksv1alpha1.Subject
	}).GetSubject()
	at := field.NewPath("subject", "parameters")
	if errs := schema.Validate(ctx, at, subject.GetParameters().GetRaw()); len(errs) > 0 {
		return fmt.Errorf("the controllers would not send these parameters: %w", errs.ToAggregate())
	}
	return nil
}
