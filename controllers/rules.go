// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// rulesInCluster keeps what rules read, and their places.
type rulesInCluster struct {
	params *ruleParams
	places *rulePlaces
	ctx    context.Context // while what rules read is watched; set before Use is called
}

var _ hookrule.Cluster = (*rulesInCluster)(nil)

// Use implements hookrule.Cluster.
func (c *rulesInCluster) Use(
	objects []*v1alpha1.HookRule, inEffect []registry.Registration, reads []hookrule.Reference,
) {
	c.params.use(c.ctx, reads)
	c.places.see(objects, inEffect)
}

// Problem implements hookrule.Cluster.
func (c *rulesInCluster) Problem(references []hookrule.Reference) string {
	return c.params.problem(references)
}

// Shown implements hookrule.Cluster.
func (c *rulesInCluster) Shown(listed []status.InProcess) []status.InProcess {
	return c.places.shownIn(listed)
}
