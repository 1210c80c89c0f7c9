// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

// Where the rules are written down: in Cluster API v1.14, by the path in its repository, a comma and a name in the
// file; in its book, by the page, a comma and a heading; and in this project, by the path. Several are separated by
// semicolons, and a remark follows a colon. test/extra/extension checks that they exist.
const (
	book          = "Cluster API book, "
	guidelines    = book + "implement-extensions.md, "
	topologyBook  = book + "implement-topology-mutation-hook.md, "
	inPlaceBook   = book + "implement-in-place-update-hooks.md, "
	planBook      = book + "implement-upgrade-plan-hooks.md, "
	runtimeClient = "Cluster API, internal/runtime/client/client.go, "
	runtimeServer = "Cluster API, exp/runtime/server/server.go, "
	patchHelper   = "Cluster API, core/reconcilers/topology/cluster/patches/patch.go, "
	patchEngine   = "Cluster API, core/reconcilers/topology/cluster/patches/engine.go, "
	upgradePlan   = "Cluster API, exp/topology/desiredstate/upgrade_plan.go, DefaultAndValidateUpgradePlans"
	classRules    = "Cluster API, internal/topology/variables/clusterclass_variable_validation.go, "
	classTypes    = "Cluster API, api/core/v1beta2/clusterclass_types.go, "
	hookTypes     = "Cluster API, api/runtime/hooks/v1alpha1/"
	contract      = "proto/hookgate/hooks/v1alpha1/"
)
