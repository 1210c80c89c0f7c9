// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// blueprint returns a ClusterClass with its templates, as Cluster API's topology controller reads them. It has no
// exported code for it.
func blueprint(
	ctx context.Context, c client.Reader, topology clusterv1.Topology, class *clusterv1.ClusterClass,
) (*scope.ClusterBlueprint, error) {
	templates := templateReader{ctx: ctx, client: c, class: class}
	b := &scope.ClusterBlueprint{
		Topology: topology, ClusterClass: class,
		InfrastructureClusterTemplate: templates.get(class.Spec.Infrastructure.TemplateRef, "spec.infrastructure"),
		ControlPlane: &scope.ControlPlaneBlueprint{
			Template: templates.get(class.Spec.ControlPlane.TemplateRef, "spec.controlPlane"),
		},
		MachineDeployments: map[string]*scope.MachineDeploymentBlueprint{},
		MachinePools:       map[string]*scope.MachinePoolBlueprint{},
	}
	if b.HasControlPlaneInfrastructureMachine() {
		b.ControlPlane.InfrastructureMachineTemplate = templates.get(
			class.Spec.ControlPlane.MachineInfrastructure.TemplateRef, "spec.controlPlane.machineInfrastructure")
	}
	if b.HasControlPlaneMachineHealthCheck() {
		b.ControlPlane.HealthCheck = class.Spec.ControlPlane.HealthCheck
	}
	for i := range class.Spec.Workers.MachineDeployments {
		md := &class.Spec.Workers.MachineDeployments[i]
		at := fmt.Sprintf("spec.workers.machineDeployments[class=%s]", md.Class)
		b.MachineDeployments[md.Class] = &scope.MachineDeploymentBlueprint{
			Metadata: *md.Metadata.DeepCopy(), HealthCheck: md.HealthCheck,
			InfrastructureMachineTemplate: templates.get(md.Infrastructure.TemplateRef, at+".infrastructure"),
			BootstrapTemplate:             templates.get(md.Bootstrap.TemplateRef, at+".bootstrap"),
		}
	}
	for i := range class.Spec.Workers.MachinePools {
		mp := &class.Spec.Workers.MachinePools[i]
		at := fmt.Sprintf("spec.workers.machinePools[class=%s]", mp.Class)
		b.MachinePools[mp.Class] = &scope.MachinePoolBlueprint{
			Metadata:                          *mp.Metadata.DeepCopy(),
			InfrastructureMachinePoolTemplate: templates.get(mp.Infrastructure.TemplateRef, at+".infrastructure"),
			BootstrapTemplate:                 templates.get(mp.Bootstrap.TemplateRef, at+".bootstrap"),
		}
	}
	return b, templates.err
}

// templateReader reads the templates of a class, until one cannot be read.
type templateReader struct {
	ctx    context.Context
	client client.Reader
	class  *clusterv1.ClusterClass
	err    error
}

// get returns a template.
func (t *templateReader) get(ref clusterv1.ClusterClassTemplateReference, at string) *unstructured.Unstructured {
	if t.err != nil {
		return nil
	}
	o, err := external.Get(t.ctx, t.client, ref.ToObjectReference(t.class.Namespace))
	if err != nil {
		t.err = fmt.Errorf("ClusterClass %q: %s: %s %q (%s): %w", t.class.Name, at, ref.Kind, ref.Name, ref.APIVersion, err)
	}
	return o
}
