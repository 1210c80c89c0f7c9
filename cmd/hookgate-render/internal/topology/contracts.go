// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/store"
)

// checkContracts returns an error that names all kinds of a ClusterClass whose contracts are not known. Cluster API
// always needs the contract of the control plane, and those of templates only if it reconciles the ClusterClass.
func checkContracts(ctx context.Context, s *store.Store, class *clusterv1.ClusterClass, reconciled bool) error {
	controlPlane := class.Spec.ControlPlane.TemplateRef.GroupVersionKind()
	controlPlane.Kind = strings.TrimSuffix(controlPlane.Kind, clusterv1.TemplateSuffix)
	var others []schema.GroupVersionKind
	if reconciled {
		others = templates(&class.Spec)
	}
	if err := s.CheckContracts(ctx, controlPlane, others...); err != nil {
		return fmt.Errorf("ClusterClass %q: %w", class.Name, err)
	}
	return nil
}

// templates returns the kinds of the templates of a ClusterClass.
func templates(spec *clusterv1.ClusterClassSpec) (kinds []schema.GroupVersionKind) {
	refs := []clusterv1.ClusterClassTemplateReference{
		spec.Infrastructure.TemplateRef, spec.ControlPlane.TemplateRef, spec.ControlPlane.MachineInfrastructure.TemplateRef,
	}
	for i := range spec.Workers.MachineDeployments {
		md := &spec.Workers.MachineDeployments[i]
		refs = append(refs, md.Bootstrap.TemplateRef, md.Infrastructure.TemplateRef)
	}
	for i := range spec.Workers.MachinePools {
		mp := &spec.Workers.MachinePools[i]
		refs = append(refs, mp.Bootstrap.TemplateRef, mp.Infrastructure.TemplateRef)
	}
	for i := range refs {
		if refs[i].IsDefined() {
			kinds = append(kinds, refs[i].GroupVersionKind())
		}
	}
	return kinds
}
