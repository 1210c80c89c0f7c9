// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Gateways that watch different ExtensionConfigs do not compete: each has its own leader.
func TestLeaseNames(t *testing.T) {
	seen := map[string]bool{}
	for _, watches := range [][2]string{
		{"runtime.cluster.x-k8s.io", ""}, {"runtime.hookgate.dev", ""}, {"runtime.hookgate.dev", "blue"}, {"runtime.hookgate.dev", "Blue_Green.2"},
	} {
		name := leaseName(watches[0], watches[1])
		if seen[name] {
			t.Errorf("%v have the Lease %s of others", watches, name)
		}
		seen[name] = true
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			t.Errorf("%v have the Lease %s: %v", watches, name, wrong)
		}
	}
	if got := leaseName("runtime.hookgate.dev", ""); got != "hookgate-leader-election-runtime.hookgate.dev" {
		t.Errorf("without a watch filter the Lease is %s, which an older gateway does not know", got)
	}
}
