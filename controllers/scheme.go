// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// The kinds of which only metadata is watched.
var (
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")
	secretKind    = corev1.SchemeGroupVersion.WithKind("Secret")
)

// ownKind is a kind of Hookgate's own, and what those want who install it.
type ownKind struct{ name, wanted string }

// ownKinds returns all of them; the first that a text names is meant.
func ownKinds() []ownKind {
	own := []ownKind{
		{rollout.RecordKind, rollout.Description.Wanted}, {clusterRecordKind, "rules with concurrency, or jobs"},
	}
	for _, k := range allkinds.Own() {
		own = append(own, ownKind{k.Name, k.Wanted})
	}
	return own
}

// newScheme returns a scheme with Cluster API's Go types of ExtensionConfig in a group.
func newScheme(group string) *runtime.Scheme {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: group, Version: runtimev1.GroupVersion.Version}
	scheme.AddKnownTypes(version, &runtimev1.ExtensionConfig{}, &runtimev1.ExtensionConfigList{})
	metav1.AddToGroupVersion(scheme, version)
	scheme.AddKnownTypes(discoveryv1.SchemeGroupVersion, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{})
	metav1.AddToGroupVersion(scheme, discoveryv1.SchemeGroupVersion)
	scheme.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.ControllerRevision{}, &appsv1.ControllerRevisionList{})
	metav1.AddToGroupVersion(scheme, appsv1.SchemeGroupVersion)
	// Either fails for types that conflict, which would be a defect.
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(batchv1.AddToScheme(scheme))
	return scheme
}

// newMapper returns a mapper with the kinds in use, so that nothing has to ask the API server for them, which may be
// away or not have the kind yet.
func newMapper(group string) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: group, Version: runtimev1.GroupVersion.Version, Kind: extensionconfig.Kind},
		meta.RESTScopeRoot)
	for _, k := range ownKinds() {
		scope := meta.RESTScopeRoot
		if k.name == rollout.RecordKind || k.name == clusterRecordKind {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(v1alpha1.GroupVersion.WithKind(k.name), scope)
	}
	mapper.Add(namespaceKind, meta.RESTScopeRoot)
	mapper.Add(controlPlaneKind, meta.RESTScopeNamespace)
	mapper.Add(deploymentKind, meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind(revisionKind), meta.RESTScopeNamespace)
	mapper.Add(secretKind, meta.RESTScopeNamespace)
	for _, kind := range jobKinds {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), meta.RESTScopeNamespace)
	return mapper
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	return o
}

func namespaceMetadata() *metav1.PartialObjectMetadata { return metadataOf(namespaceKind) }

// keepLabels removes metadata that the cache does not need. It keeps names, versions and labels.
func keepLabels(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		o.Annotations, o.ManagedFields, o.OwnerReferences, o.Finalizers = nil, nil, nil, nil
	}
	return object, nil
}
