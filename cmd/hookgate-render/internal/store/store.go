// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package store holds the objects that a render reads: those of files, and of an API server, which is never written to.
// What Cluster API's code writes stays in the memory of the process.
package store

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// addOthers adds the types that are not of Cluster API's providers.
func addOthers(s *runtime.Scheme) error {
	return errors.Join(corev1.AddToScheme(s), apiextensionsv1.AddToScheme(s), runtimev1.AddToScheme(s))
}

// Store is a client of the objects. It belongs to one render.
type Store struct {
	client.Client

	live client.Reader // nil without an API server
	// changed are the objects of files and those that have been read before, whose live versions are not used.
	known map[key]bool
	// originals are the live objects as they are stored, with their managed fields.
	originals map[key]*unstructured.Unstructured
}

// key names an object in one of its versions.
type key struct {
	schema.GroupVersionKind
	client.ObjectKey
}

// New returns the store of the objects of files, and of live for all other objects. Objects of files that name no
// namespace are in the given one. live may be nil.
func New(
	ctx context.Context, objects []*unstructured.Unstructured, namespace string, live client.Reader,
) (*Store, error) {
	s := &Store{live: live, known: map[key]bool{}, originals: map[key]*unstructured.Unstructured{}}
	s.Client = fake.NewClientBuilder().WithScheme(Scheme()).
		WithStatusSubresource(&clusterv1.ClusterClass{}, &clusterv1.Cluster{}).
		WithInterceptorFuncs(interceptor.Funcs{Get: s.get, List: s.list}).Build()
	for _, o := range objects {
		o = o.DeepCopy()
		if o.GetNamespace() == "" && isNamespaced(o.GroupVersionKind()) {
			o.SetNamespace(namespace)
		}
		converted, err := newest(ctx, o)
		if err != nil {
			return nil, err
		}
		if converted != o && o.GroupVersionKind().Group != clusterv1.GroupVersion.Group {
			// A ClusterClass names the version of its templates, so that they are needed in the version of the file, too.
			if err := s.add(ctx, o); err != nil {
				return nil, err
			}
		}
		if err := s.add(ctx, converted); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// isNamespaced reports whether objects of a kind have a namespace, as all kinds of Cluster API's contracts do.
func isNamespaced(gvk schema.GroupVersionKind) bool {
	switch gvk.Kind {
	case crd.Kind, "Namespace", "ExtensionConfig":
		return false
	}
	return true
}

// add adds an object of a file. The last one of a name is used.
func (s *Store) add(ctx context.Context, o *unstructured.Unstructured) error {
	k := key{o.GroupVersionKind(), client.ObjectKeyFromObject(o)}
	if s.known[k] {
		if err := s.Delete(ctx, o.DeepCopy()); err != nil {
			return err
		}
	}
	return s.remember(ctx, o)
}

// remember adds an object to those in memory.
func (s *Store) remember(ctx context.Context, o *unstructured.Unstructured) error {
	o = o.DeepCopy()
	s.known[key{o.GroupVersionKind(), client.ObjectKeyFromObject(o)}] = true
	o.SetResourceVersion("")
	o.SetManagedFields(nil)
	if o.GetKind() == crd.Kind { // only labels matter
		o.Object = map[string]any{
			"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(),
			"metadata": map[string]any{"name": o.GetName(), "labels": o.Object["metadata"].(map[string]any)["labels"]},
		}
	}
	if err := s.Create(ctx, o); err != nil {
		return fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// get reads an object from memory; if it is not there, from the API server.
func (s *Store) get(
	ctx context.Context, memory client.WithWatch, k client.ObjectKey, into client.Object, opts ...client.GetOption,
) error {
	err := memory.Get(ctx, k, into, opts...)
	if !apierrors.IsNotFound(err) {
		return err
	}
	gvk, gvkErr := apiutil.GVKForObject(into, s.Scheme())
	if gvkErr != nil {
		return gvkErr
	}
	found, liveErr := s.fetch(ctx, gvk, k)
	if liveErr != nil {
		return liveErr
	}
	if found == nil {
		if found = contracts(gvk, k); found == nil {
			return err
		}
	}
	if err := s.remember(ctx, found); err != nil {
		return err
	}
	return memory.Get(ctx, k, into, opts...)
}

// fetch returns an object of the API server; nil if there is none.
func (s *Store) fetch(
	ctx context.Context, gvk schema.GroupVersionKind, k client.ObjectKey,
) (*unstructured.Unstructured, error) {
	name := key{gvk, k}
	if s.live == nil || s.known[name] {
		return nil, nil
	}
	if gvk.Kind == crd.Kind {
		return s.fetchLabels(ctx, gvk, k)
	}
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	err := s.live.Get(ctx, k, o)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	s.originals[name] = o.DeepCopy()
	return o, nil
}

// fetchLabels returns the name and the labels of a CustomResourceDefinition.
func (s *Store) fetchLabels(
	ctx context.Context, gvk schema.GroupVersionKind, k client.ObjectKey,
) (*unstructured.Unstructured, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(gvk)
	err := s.live.Get(ctx, k, m)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err): // the kinds that are known need none
		return nil, nil
	case err != nil:
		return nil, err
	}
	return definition(m.Name, m.Labels), nil
}

// list adds the objects of the API server to those in memory, and lists these.
func (s *Store) list(
	ctx context.Context, memory client.WithWatch, into client.ObjectList, opts ...client.ListOption,
) error {
	if s.live != nil {
		gvk, err := apiutil.GVKForObject(into, s.Scheme())
		if err != nil {
			return err
		}
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(gvk)
		if err := s.live.List(ctx, found, opts...); err != nil && !meta.IsNoMatchError(err) {
			return err
		}
		for i := range found.Items {
			o := &found.Items[i]
			o.SetGroupVersionKind(gvk.GroupVersion().WithKind(strings.TrimSuffix(gvk.Kind, "List")))
			k := key{o.GroupVersionKind(), client.ObjectKeyFromObject(o)}
			if s.known[k] {
				continue
			}
			s.originals[k] = o.DeepCopy()
			if err := s.remember(ctx, o); err != nil {
				return err
			}
		}
	}
	return memory.List(ctx, into, opts...)
}

// Original returns an object as it is stored by the API server; nil if it has not been read from there.
func (s *Store) Original(gvk schema.GroupVersionKind, k client.ObjectKey) *unstructured.Unstructured {
	return s.originals[key{gvk, k}]
}

// Clusters returns the names of the Clusters in memory.
func (s *Store) Clusters(ctx context.Context) ([]client.ObjectKey, error) {
	var all clusterv1.ClusterList
	if s.live != nil {
		return nil, nil
	}
	if err := s.List(ctx, &all); err != nil {
		return nil, err
	}
	var names []client.ObjectKey
	for i := range all.Items {
		if all.Items[i].Spec.Topology.IsDefined() {
			names = append(names, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return names, nil
}
