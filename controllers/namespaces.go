// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// namespaces holds the labels of the cluster's namespaces. Calls read them, so reading takes no lock and copies
// nothing.
type namespaces struct {
	byName sync.Map // string to map[string]string; the maps are never changed
}

func (n *namespaces) labelsOf(name string) (labels map[string]string, known bool) {
	if found, ok := n.byName.Load(name); ok {
		if labels, ok := found.(map[string]string); ok {
			return labels, true
		}
	}
	return map[string]string{corev1.LabelMetadataName: name}, false
}

// follow keeps n up to date until ctx is done. The function that it returns waits until n has all namespaces, and
// reports whether that was before its own context was done.
func (n *namespaces) follow(ctx context.Context, c cache.Cache) (synced func(context.Context) bool, err error) {
	hasSynced, err := followMetadata(ctx, c, namespaceMetadata(), n.set, n.remove)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) bool { return toolscache.WaitForCacheSync(ctx.Done(), hasSynced) }, nil
}

// followMetadata calls set for each object of a kind that is new or has changed, and remove for each that is gone, once
// the cache runs. synced reports whether set has had all that were there.
func followMetadata(
	ctx context.Context, c cache.Cache, of *metav1.PartialObjectMetadata, set, remove func(object any),
) (synced func() bool, err error) {
	informer, err := c.GetInformer(ctx, of, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(_, object any) { set(object) }, DeleteFunc: remove,
	})
	if err != nil {
		return nil, err
	}
	return registration.HasSynced, nil
}

func (n *namespaces) set(object any) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		labels := make(map[string]string, len(o.Labels)+1)
		maps.Copy(labels, o.Labels)
		labels[corev1.LabelMetadataName] = o.Name
		n.byName.Store(o.Name, labels)
	}
}

func (n *namespaces) remove(object any) {
	if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		n.byName.Delete(unknown.Key)
	} else if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		n.byName.Delete(o.Name)
	}
}
