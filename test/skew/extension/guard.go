// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/controllers/external"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// classesSetting lists the names of the ClusterClasses that Clusters may have, separated by commas.
const classesSetting = "classes"

// guard does with a Cluster what extensions do.
type guard struct {
	reader client.Reader
	record string // a directory, or ""
}

// guards returns the handlers of --guard.
func guards(g guard) []server.ExtensionHandler {
	return []server.ExtensionHandler{
		{
			Name: "create-guard", Hook: runtimehooksv1.BeforeClusterCreate,
			HandlerFunc: func(_ context.Context, q *runtimehooksv1.BeforeClusterCreateRequest, r *runtimehooksv1.BeforeClusterCreateResponse) {
				answer(r, errors.Join(g.write("BeforeClusterCreate", &q.Cluster), allowed(&q.Cluster, q.Settings)))
			},
		},
		{
			Name: "initialized-guard", Hook: runtimehooksv1.AfterControlPlaneInitialized,
			HandlerFunc: func(ctx context.Context, q *runtimehooksv1.AfterControlPlaneInitializedRequest, r *runtimehooksv1.AfterControlPlaneInitializedResponse) {
				answer(r, errors.Join(g.write("AfterControlPlaneInitialized", &q.Cluster), g.follow(ctx, &q.Cluster)))
			},
		},
		{
			Name: "upgrade-guard", Hook: runtimehooksv1.BeforeClusterUpgrade,
			HandlerFunc: func(_ context.Context, q *runtimehooksv1.BeforeClusterUpgradeRequest, r *runtimehooksv1.BeforeClusterUpgradeResponse) {
				answer(r, errors.Join(g.write("BeforeClusterUpgrade", &q.Cluster), allowed(&q.Cluster, q.Settings)))
			},
		},
		{
			Name: "delete-guard", Hook: runtimehooksv1.BeforeClusterDelete,
			HandlerFunc: func(ctx context.Context, q *runtimehooksv1.BeforeClusterDeleteRequest, r *runtimehooksv1.BeforeClusterDeleteResponse) {
				answer(r, errors.Join(g.write("BeforeClusterDelete", &q.Cluster), g.follow(ctx, &q.Cluster)))
			},
		},
	}
}

func answer(r runtimehooksv1.ResponseObject, err error) {
	if err != nil {
		refuse(r, err)
		return
	}
	r.SetStatus(runtimehooksv1.ResponseStatusSuccess)
}

// allowed returns an error unless the Cluster's class is allowed.
func allowed(c *clusterv1beta1.Cluster, settings map[string]string) error {
	if c.Spec.Topology == nil {
		return errors.New("the Cluster has no topology")
	}
	if !slices.Contains(strings.Split(settings[classesSetting], ","), c.Spec.Topology.Class) {
		return fmt.Errorf("ClusterClass %q is not allowed", c.Spec.Topology.Class)
	}
	return nil
}

// follow gets the objects that the Cluster refers to.
func (g guard) follow(ctx context.Context, c *clusterv1beta1.Cluster) error {
	for name, ref := range map[string]*corev1.ObjectReference{"controlPlaneRef": c.Spec.ControlPlaneRef, "infrastructureRef": c.Spec.InfrastructureRef} {
		if ref == nil {
			return fmt.Errorf("the Cluster has no %s", name)
		}
		if _, err := external.Get(ctx, g.reader, ref); err != nil {
			return fmt.Errorf("follow %s: %w", name, err)
		}
	}
	return nil
}

// write keeps the Cluster of the last call of a hook. A reader sees a whole one at any time.
func (g guard) write(hook string, c *clusterv1beta1.Cluster) error {
	if g.record == "" {
		return nil
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file := filepath.Join(g.record, hook+".json")
	if err := os.WriteFile(file+".new", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
