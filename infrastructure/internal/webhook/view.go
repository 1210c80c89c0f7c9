// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// A view is what the rules have to know of an object or a template.
type view struct {
	kind        string // of the objects, of a template too
	metadata    *metav1.ObjectMeta
	at          *field.Path // of the fields below
	class       string      // empty if it is the one of the cluster
	parameters  []byte
	credentials *v1alpha1.SecretReference
	identity    string                // the name of the one that is referred to; empty without one
	template    *clusterv1.ObjectMeta // nil of objects
	spec        any                   // of the objects of a template; nil of objects

	pool *v1alpha1.HookgateMachinePool // the pool, or one of the template; nil of other kinds
}

// instance returns the name of the instance of a group that a HookgateMachine stands for; empty for other objects. Its
// parameters are never sent: the pool has those of the instance.
func (v view) instance() string {
	if v.kind != v1alpha1.HookgateMachineKind || v.template != nil {
		return ""
	}
	return v.metadata.Annotations[v1alpha1.InstanceAnnotation]
}

// named returns the kind of the object or template itself.
func (v view) named() string {
	if v.template != nil {
		return v.kind + "Template"
	}
	return v.kind
}

// owned reports whether the object is made by Cluster API from a ClusterClass, so that its parameters are complete.
func (v view) owned() bool {
	_, ok := v.metadata.Labels[clusterv1.ClusterTopologyOwnedLabel]
	return ok
}

var (
	specPath     = field.NewPath("spec")
	templatePath = field.NewPath("spec", "template", "spec")
)

func nameOf(r *v1alpha1.IdentityReference) string {
	if r == nil {
		return ""
	}
	return r.Name
}

func viewCluster(o *v1alpha1.HookgateCluster) view {
	return view{
		kind: v1alpha1.HookgateClusterKind, metadata: &o.ObjectMeta, at: specPath,
		class: o.Spec.InfrastructureClassName, parameters: raw(o.Spec.Parameters), credentials: o.Spec.CredentialsRef,
		identity: nameOf(o.Spec.IdentityRef),
	}
}

func viewClusterTemplate(o *v1alpha1.HookgateClusterTemplate) view {
	t := &o.Spec.Template
	return view{
		kind: v1alpha1.HookgateClusterKind, metadata: &o.ObjectMeta, at: templatePath,
		class: t.Spec.InfrastructureClassName, parameters: raw(t.Spec.Parameters), credentials: t.Spec.CredentialsRef,
		template: &t.ObjectMeta, spec: t.Spec,
	}
}

func viewMachine(o *v1alpha1.HookgateMachine) view {
	return view{
		kind: v1alpha1.HookgateMachineKind, metadata: &o.ObjectMeta, at: specPath, parameters: raw(o.Spec.Parameters),
	}
}

func viewMachineTemplate(o *v1alpha1.HookgateMachineTemplate) view {
	t := &o.Spec.Template
	return view{
		kind: v1alpha1.HookgateMachineKind, metadata: &o.ObjectMeta, at: templatePath,
		parameters: raw(t.Spec.Parameters), template: &t.ObjectMeta, spec: t.Spec,
	}
}

func viewMachinePool(o *v1alpha1.HookgateMachinePool) view {
	return view{
		kind: v1alpha1.HookgateMachinePoolKind, metadata: &o.ObjectMeta, at: specPath, parameters: raw(o.Spec.Parameters),
		pool: o,
	}
}

func viewMachinePoolTemplate(o *v1alpha1.HookgateMachinePoolTemplate) view {
	t := &o.Spec.Template
	return view{
		kind: v1alpha1.HookgateMachinePoolKind, metadata: &o.ObjectMeta, at: templatePath,
		parameters: raw(t.Spec.Parameters), template: &t.ObjectMeta, spec: t.Spec,
		pool: &v1alpha1.HookgateMachinePool{
			Spec: v1alpha1.HookgateMachinePoolSpec{InstanceManagement: t.Spec.InstanceManagement},
		},
	}
}

// raw returns the text of JSON that may be absent.
func raw(j *apiextensionsv1.JSON) []byte {
	if j == nil {
		return nil
	}
	return j.Raw
}
