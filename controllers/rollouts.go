// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/owner"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// rollouts decides for which Clusters the candidates of ExtensionRollouts answer. All replicas do, each by the answers
// that it sees; what they decide is in the records, under the lock of the resource version.
type rollouts struct {
	engine   *rollout.Engine
	clusters *clusters
	logger   *slog.Logger
	readOnly bool
	// namespace is where records about no Cluster are.
	namespace string
	leads     func() bool
	events    *pendingEvents[rolloutChange, string]
	gone      *goneClusters

	// Set before the registry is filled.
	live   client.Reader
	client client.Client
}

var _ rollout.Store = (*rollouts)(nil)

func newRollouts(of *clusters, leads func() bool, c *Config) *rollouts {
	r := &rollouts{
		clusters: of, logger: c.Logger, readOnly: c.ReadOnly, leads: leads,
		namespace: c.OwnNamespace,
		events:    newRolloutEvents(), gone: newGoneClusters(),
	}
	config := rollout.Config{
		Logger: c.Logger, Shared: c.LeaderElection.Enabled, Clusters: of, IsNew: r.isNew, Compared: c.RolloutCompared,
	}
	if !c.ReadOnly {
		config.Store, config.Changed = r, r.changed
	}
	r.engine = rollout.New(config)
	of.changed, of.gone = r.engine.Reconsider, r.forget
	return r
}

// Put implements rollout.Store.
func (r *rollouts) Put(ctx context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	if record.Namespace == "" {
		record.Namespace = cmp.Or(r.namespace, metav1.NamespaceDefault)
	}
	var err error
	if err = r.own(ctx, record); err != nil {
		return err
	}
	if record.ResourceVersion == "" {
		err = r.client.Create(ctx, record)
	} else {
		err = r.client.Update(ctx, record)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", rollout.ErrChanged, err)
	}
	return err
}

// own makes the Cluster of a record its owner, unless it has one or there is no such Cluster.
func (r *rollouts) own(ctx context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	of := record.Spec.Cluster
	if of == nil || owner.ClusterUID(record) != "" {
		return nil
	}
	found, err := owner.Find(ctx, r.live, types.NamespacedName{Namespace: of.Namespace, Name: of.Name})
	if err == nil && found != nil {
		owner.SetCluster(record, found)
	}
	return err
}

// isNew reports whether a Cluster is there and has neither infrastructure nor a control plane yet: the topology
// controller sets both after it has asked for patches for the first time.
func (r *rollouts) isNew(ctx context.Context, namespace, name string) (bool, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(owner.ClusterKind)
	err := r.live.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return false, fmt.Errorf("read Cluster: %w", err)
	}
	if len(list.Items) == 0 {
		return false, nil
	}
	for _, member := range []string{"infrastructureRef", "controlPlaneRef"} {
		if of, found, _ := unstructured.NestedMap(list.Items[0].Object, "spec", member); found && len(of) > 0 {
			return false, nil
		}
	}
	return true, nil
}
