// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// generateUpgradePlan plans one step for every minor version between the control plane's and the wanted one. Workers
// stop at every third minor, which is as far behind as they may be.
func generateUpgradePlan(q *runtimehooksv1.GenerateUpgradePlanRequest, r *runtimehooksv1.GenerateUpgradePlanResponse) {
	major, from, err := minor(q.FromControlPlaneKubernetesVersion)
	if err != nil {
		refuse(r, err)
		return
	}
	toMajor, to, err := minor(q.ToKubernetesVersion)
	if err != nil {
		refuse(r, err)
		return
	}
	if toMajor != major || to < from {
		refuse(r, fmt.Errorf("no way from %s to %s", q.FromControlPlaneKubernetesVersion, q.ToKubernetesVersion))
		return
	}
	for m := from + 1; m < to; m++ {
		step := runtimehooksv1.UpgradeStep{Version: fmt.Sprintf("v%d.%d.0", major, m)}
		r.ControlPlaneUpgrades = append(r.ControlPlaneUpgrades, step)
		if (m-from)%3 == 0 {
			r.WorkersUpgrades = append(r.WorkersUpgrades, step)
		}
	}
	last := runtimehooksv1.UpgradeStep{Version: q.ToKubernetesVersion}
	r.ControlPlaneUpgrades = append(r.ControlPlaneUpgrades, last)
	r.WorkersUpgrades = append(r.WorkersUpgrades, last)
}

func minor(version string) (int, int, error) {
	var major, minor int
	if _, err := fmt.Sscanf(version, "v%d.%d", &major, &minor); err != nil {
		return 0, 0, fmt.Errorf("version %q: %w", version, err)
	}
	return major, minor, nil
}

func refuse(r runtimehooksv1.ResponseObject, err error) {
	r.SetStatus(runtimehooksv1.ResponseStatusFailure)
	r.SetMessage(err.Error())
}
