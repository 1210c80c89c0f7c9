// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// lookup finds the objects that an object depends on. What cannot be read counts as absent: the controllers check it
// again, and an object must not be refused for it.
type lookup struct {
	reader client.Reader
	logger *slog.Logger
}

// class returns the name of the class of an object, which is empty if it cannot be known, and the class, which is nil
// if it does not exist.
func (l lookup) class(ctx context.Context, v view) (string, *v1alpha1.InfrastructureClass) {
	name := v.class
	if v.kind != v1alpha1.HookgateClusterKind {
		name = l.classOfCluster(ctx, v.metadata.Namespace, v.metadata.Labels[clusterv1.ClusterNameLabel])
	}
	if name == "" {
		return "", nil
	}
	class := &v1alpha1.InfrastructureClass{}
	if !l.get(ctx, client.ObjectKey{Name: name}, class) {
		return name, nil
	}
	return name, class
}

// classOfCluster returns the name of the class of a Cluster, which is empty if it has none yet.
func (l lookup) classOfCluster(ctx context.Context, namespace, name string) string {
	cluster, infrastructure := &clusterv1.Cluster{}, &v1alpha1.HookgateCluster{}
	if name == "" || !l.get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cluster) {
		return ""
	}
	ref := cluster.Spec.InfrastructureRef
	if ref.APIGroup != v1alpha1.GroupVersion.Group || ref.Kind != v1alpha1.HookgateClusterKind ||
		!l.get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, infrastructure) {
		return ""
	}
	return infrastructure.Spec.InfrastructureClassName
}

// allowed reports whether a namespace may use what says a.
func (l lookup) allowed(ctx context.Context, a *v1alpha1.AllowedNamespaces, namespace string) bool {
	if ok, err := a.Allow(namespace, nil); ok || err != nil {
		return ok
	}
	found := &corev1.Namespace{}
	if !l.get(ctx, client.ObjectKey{Name: namespace}, found) {
		return false
	}
	ok, _ := a.Allow(namespace, found.Labels) // the selector is valid
	return ok
}

func (l lookup) get(ctx context.Context, key client.ObjectKey, object client.Object) bool {
	err := l.reader.Get(ctx, key, object)
	if err != nil && !apierrors.IsNotFound(err) {
		l.logger.Warn("could not read an object for admission", "name", key.String(), "err", err)
	}
	return err == nil
}
