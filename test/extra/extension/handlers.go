// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimecatalog "sigs.k8s.io/cluster-api/api/runtime/catalog"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
)

// handlers returns all handlers of the extension. Hooks with several show how answers are put together.
func handlers(extension string) []server.ExtensionHandler {
	e := author{extension: extension}
	list := []server.ExtensionHandler{
		{Name: "create-audit", Hook: runtimehooksv1.BeforeClusterCreate, HandlerFunc: beforeClusterCreate(e, "create-audit")},
		{Name: "create-dns", Hook: runtimehooksv1.BeforeClusterCreate, HandlerFunc: beforeClusterCreate(e, "create-dns")},
		{Name: "create-quota", Hook: runtimehooksv1.BeforeClusterCreate, HandlerFunc: beforeClusterCreate(e, "create-quota")},
		{Name: "initialized", Hook: runtimehooksv1.AfterControlPlaneInitialized, HandlerFunc: handle(e, "initialized",
			func(q *runtimehooksv1.AfterControlPlaneInitializedRequest) *clusterv1.Cluster { return &q.Cluster },
			func(*runtimehooksv1.AfterControlPlaneInitializedRequest,
				*runtimehooksv1.AfterControlPlaneInitializedResponse) {
			})},
		{Name: "upgrade-backup", Hook: runtimehooksv1.BeforeClusterUpgrade, HandlerFunc: beforeClusterUpgrade(e, "upgrade-backup")},
		{Name: "upgrade-window", Hook: runtimehooksv1.BeforeClusterUpgrade, HandlerFunc: beforeClusterUpgrade(e, "upgrade-window")},
		{Name: "before-control-plane", Hook: runtimehooksv1.BeforeControlPlaneUpgrade, HandlerFunc: handle(e, "before-control-plane",
			func(q *runtimehooksv1.BeforeControlPlaneUpgradeRequest) *clusterv1.Cluster { return &q.Cluster },
			func(*runtimehooksv1.BeforeControlPlaneUpgradeRequest, *runtimehooksv1.BeforeControlPlaneUpgradeResponse) {
			})},
		{Name: "after-control-plane", Hook: runtimehooksv1.AfterControlPlaneUpgrade, HandlerFunc: handle(e, "after-control-plane",
			func(q *runtimehooksv1.AfterControlPlaneUpgradeRequest) *clusterv1.Cluster { return &q.Cluster },
			func(*runtimehooksv1.AfterControlPlaneUpgradeRequest, *runtimehooksv1.AfterControlPlaneUpgradeResponse) {
			})},
		{Name: "before-workers", Hook: runtimehooksv1.BeforeWorkersUpgrade, HandlerFunc: handle(e, "before-workers",
			func(q *runtimehooksv1.BeforeWorkersUpgradeRequest) *clusterv1.Cluster { return &q.Cluster },
			func(*runtimehooksv1.BeforeWorkersUpgradeRequest, *runtimehooksv1.BeforeWorkersUpgradeResponse) {})},
		{Name: "after-workers", Hook: runtimehooksv1.AfterWorkersUpgrade, HandlerFunc: handle(e, "after-workers",
			func(q *runtimehooksv1.AfterWorkersUpgradeRequest) *clusterv1.Cluster { return &q.Cluster },
			func(*runtimehooksv1.AfterWorkersUpgradeRequest, *runtimehooksv1.AfterWorkersUpgradeResponse) {})},
		{Name: "after-cluster", Hook: runtimehooksv1.AfterClusterUpgrade, HandlerFunc: handle(e, "after-cluster",
			func(q *runtimehooksv1.AfterClusterUpgradeRequest) *clusterv1.Cluster { return &q.Cluster },
			func(*runtimehooksv1.AfterClusterUpgradeRequest, *runtimehooksv1.AfterClusterUpgradeResponse) {})},
		{Name: "delete-backup", Hook: runtimehooksv1.BeforeClusterDelete, HandlerFunc: beforeClusterDelete(e, "delete-backup")},
		{Name: "delete-dns", Hook: runtimehooksv1.BeforeClusterDelete, HandlerFunc: beforeClusterDelete(e, "delete-dns")},
		{Name: "patches", Hook: runtimehooksv1.GeneratePatches, HandlerFunc: handle(e, "patches", noCluster, generatePatches)},
		{Name: "validate", Hook: runtimehooksv1.ValidateTopology, HandlerFunc: handle(e, "validate", noCluster, validateTopology)},
		{Name: "variables", Hook: runtimehooksv1.DiscoverVariables, HandlerFunc: handle(e, "variables", noCluster, discoverVariables)},
		{Name: "plan", Hook: runtimehooksv1.GenerateUpgradePlan, HandlerFunc: handle(e, "plan",
			func(q *runtimehooksv1.GenerateUpgradePlanRequest) *clusterv1.Cluster { return &q.Cluster }, generateUpgradePlan)},
		{Name: "can-update-machine", Hook: runtimehooksv1.CanUpdateMachine, HandlerFunc: handle(e, "can-update-machine", noCluster, canUpdateMachine)},
		{Name: "can-update-machineset", Hook: runtimehooksv1.CanUpdateMachineSet, HandlerFunc: handle(e, "can-update-machineset", noCluster, canUpdateMachineSet)},
		{Name: "update-machine", Hook: runtimehooksv1.UpdateMachine, HandlerFunc: handle(e, "update-machine", noCluster, updateMachine)},
	}
	for i := range list {
		switch list[i].Name {
		case "create-dns":
			list[i].FailurePolicy = ptr.To(runtimehooksv1.FailurePolicyIgnore)
		case "patches":
			list[i].TimeoutSeconds = ptr.To[int32](30)
			list[i].FailurePolicy = ptr.To(runtimehooksv1.FailurePolicyFail)
		case "update-machine":
			list[i].TimeoutSeconds = ptr.To[int32](20)
		}
	}
	return list
}

func beforeClusterCreate(e author, name string) runtimecatalog.Hook {
	return handle(e, name, func(q *runtimehooksv1.BeforeClusterCreateRequest) *clusterv1.Cluster { return &q.Cluster },
		func(*runtimehooksv1.BeforeClusterCreateRequest, *runtimehooksv1.BeforeClusterCreateResponse) {})
}

func beforeClusterUpgrade(e author, name string) runtimecatalog.Hook {
	return handle(e, name, func(q *runtimehooksv1.BeforeClusterUpgradeRequest) *clusterv1.Cluster { return &q.Cluster },
		func(*runtimehooksv1.BeforeClusterUpgradeRequest, *runtimehooksv1.BeforeClusterUpgradeResponse) {})
}

func beforeClusterDelete(e author, name string) runtimecatalog.Hook {
	return handle(e, name, func(q *runtimehooksv1.BeforeClusterDeleteRequest) *clusterv1.Cluster { return &q.Cluster },
		func(*runtimehooksv1.BeforeClusterDeleteRequest, *runtimehooksv1.BeforeClusterDeleteResponse) {})
}

// noCluster is for hooks whose request carries no Cluster; those get instructions only from settings.
func noCluster[Q any](*Q) *clusterv1.Cluster { return nil }

// request and response bind a message type to the interface of the pointer to it.
type request[Q any] interface {
	*Q
	runtimehooksv1.RequestObject
}

type response[R any] interface {
	*R
	runtimehooksv1.ResponseObject
}

// handle returns a handler: it signs the answer with what was decoded, lets fill add what the hook is about, and then
// follows the instructions that the request has for this handler.
func handle[Q, R any, PQ request[Q], PR response[R]](e author, name string, cluster func(*Q) *clusterv1.Cluster,
	fill func(*Q, *R)) func(context.Context, *Q, *R) {
	return func(ctx context.Context, q *Q, r *R) {
		PR(r).SetStatus(runtimehooksv1.ResponseStatusSuccess)
		PR(r).SetMessage(e.sign(name, PQ(q)))
		fill(q, r)
		text := instructions(name, PQ(q).GetSettings(), cluster(q))
		if text == echoInstruction {
			PR(r).SetMessage(e.echo(name, PQ(q)))
			return
		}
		follow(ctx, text, PR(r))
	}
}
