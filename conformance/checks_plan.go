// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

var planChecks = []Check{
	{
		ID: "plan.control-plane", Level: Must,
		Rule: "The versions in controlPlaneUpgrades rise from the current version of the control plane to the wanted " +
			"version, without skipping a minor version.",
		Source: planBook + "GenerateUpgradePlan; " + upgradePlan,
		run: eachPlan(func(q *hooksv1alpha1.GenerateUpgradePlanRequest, d *document) string {
			return checkSteps("controlPlaneUpgrades", q.GetFromControlPlaneKubernetesVersion(),
				q.GetToKubernetesVersion(), d.ControlPlaneUpgrades, 1)
		}),
	},
	{
		ID: "plan.workers", Level: Must,
		Rule: "workersUpgrades is empty, or its versions rise to the wanted version. Each step spans at most three minor " +
			"versions, and ends at a version that the control plane has.",
		Source: planBook + "GenerateUpgradePlan; " + upgradePlan,
		run: eachPlan(func(q *hooksv1alpha1.GenerateUpgradePlanRequest, d *document) string {
			if len(d.WorkersUpgrades) == 0 {
				return ""
			}
			// A control plane that has the wanted version already has no steps to compare with.
			for i, step := range d.WorkersUpgrades {
				if len(d.ControlPlaneUpgrades) > 0 && step.Version != q.GetFromControlPlaneKubernetesVersion() &&
					!slices.Contains(d.ControlPlaneUpgrades, step) {
					return fmt.Sprintf("workersUpgrades[%d]: the control plane never has version %q",
						i, step.Version)
				}
			}
			return checkSteps("workersUpgrades", q.GetFromWorkersKubernetesVersion(), q.GetToKubernetesVersion(),
				d.WorkersUpgrades, 3)
		}),
	},
}

// eachPlan returns a run that reports the problems that check finds in the plans of all handlers of
// GenerateUpgradePlan.
func eachPlan(check func(*hooksv1alpha1.GenerateUpgradePlanRequest, *document) string) runFunc {
	return func(ctx context.Context, s *session, v *verdict) {
		plans := 0
		for _, h := range s.working(ctx, v, "GenerateUpgradePlan") {
			x := s.base(ctx, h)
			req, ok := s.request(h).(*hooksv1alpha1.GenerateUpgradePlanRequest)
			if !ok || x.status() != success {
				continue
			}
			plans++
			if problem := check(req, x.parsed); problem != "" {
				v.failf(x, "%s", problem)
			}
		}
		if plans == 0 && v.notFor == "" {
			v.skipf("the realistic request got no plan")
		}
	}
}

// checkSteps returns the first problem with the steps of an upgrade, or "". Versions that differ only in their build
// metadata have no order.
func checkSteps(member, from, to string, steps []step, most uint64) string {
	current, err := semver.ParseTolerant(from)
	if err != nil {
		return "" // the request is ours, or the user's
	}
	last, err := semver.ParseTolerant(to)
	if err != nil {
		return ""
	}
	if len(steps) == 0 && (last.Compare(current) != 0 || !slices.Equal(last.Build, current.Build)) {
		return member + " is empty"
	}
	for i, step := range steps {
		next, err := semver.ParseTolerant(step.Version)
		switch {
		case err != nil:
			return fmt.Sprintf("%s[%d]: %q is not a version: %s", member, i, step.Version, err)
		case next.Compare(current) < 0, next.Compare(current) == 0 && slices.Equal(next.Build, current.Build):
			return fmt.Sprintf("%s[%d]: version %s is not greater than v%s", member, i, step.Version, current)
		case next.Minor > current.Minor+most:
			return fmt.Sprintf("%s[%d]: the step from v%s to %s skips minor "+
				"versions", member, i, current, step.Version)
		}
		current = next
	}
	if last.Compare(current) != 0 || !slices.Equal(last.Build, current.Build) {
		return fmt.Sprintf("%s ends with v%s, not with %s", member, current, to)
	}
	return ""
}
