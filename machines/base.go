// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// base is what the controllers share.
type base struct {
	client client.Client // reads from the cache
	live   client.Reader // reads from the API server
	events events.EventRecorder
	config *Config
}

// setUp adds the controllers to a manager.
func (b *base) setUp(ctx context.Context, mgr manager.Manager) error {
	return nil
}

// hook returns a hook of Machines by its name.
func (b *base) hook(name string) (*catalog.Hook, error) {
	gvh := hook.GroupVersionHook{Group: hook.MachinesGroup, Version: hook.MachinesVersion, Hook: name}
	h, ok := b.config.Catalog.Lookup(gvh)
	if !ok {
		return nil, fmt.Errorf("the catalog has no hook %s", gvh)
	}
	return h, nil
}

// objectsOf returns a Machine and its Cluster, which is nil if it does not exist, as requests have them.
func (b *base) objectsOf(
	ctx context.Context, m *clusterv1.Machine,
) (machine, cluster *hooksv1alpha1.RawExtension, _ *clusterv1.Cluster, err error) {
	if machine, err = rawOf(m.DeepCopy(), "Machine"); err != nil {
		return nil, nil, nil, err
	}
	c := &clusterv1.Cluster{}
	err = b.client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, c)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, nil, err
	}
	if err != nil {
		return machine, nil, nil, nil
	}
	cluster, err = rawOf(c.DeepCopy(), "Cluster")
	return machine, cluster, c, err
}

// rawOf returns an object of Cluster API as requests have it. It changes the object.
func rawOf(o client.Object, kind string) (*hooksv1alpha1.RawExtension, error) {
	o.GetObjectKind().SetGroupVersionKind(clusterv1.GroupVersion.WithKind(kind))
	o.SetManagedFields(nil)
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", kind, err)
	}
	return &hooksv1alpha1.RawExtension{Raw: data}, nil
}
