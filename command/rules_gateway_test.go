// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"path/filepath"
	"strings"
	"testing"
)

// heldRule is the manifest of a rule that holds each upgrade, and says to which version.
const heldRule = `apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: approved}
spec:
  hook: BeforeClusterUpgrade
  hold:
  - if: "true"
    message: '"waits for approval of " + request.toKubernetesVersion'
    retryAfterSeconds: 60
`

// TestRulesAreHandlers calls a gateway that has a rule and no extension.
func TestRulesAreHandlers(t *testing.T) {
	g := newClusterGateway(t, heldRule)
	request := filepath.Join("..", "examples", "requests", "before-cluster-upgrade.yaml")
	for name, handler := range map[string]string{"All": "", "Named": "rule.approved", "Label": "rule--approved"} {
		args := []string{"call", "BeforeClusterUpgrade", "--kubeconfig", g.kubeconfig, "--ca", g.ca, "-f", request}
		if handler != "" {
			args = append(args, "--handler", handler)
		}
		got := hookgate(t, "", args...)
		if !strings.Contains(got.out, "waits for approval of v1.") || !strings.Contains(got.out, "60") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got := hookgate(t, "", "explain", "BeforeClusterUpgrade", "-f", request, "--kubeconfig", g.kubeconfig, "--ca", g.ca)
	if got.code != exitDone || !strings.Contains(got.out, "rule.approved") {
		t.Errorf("explain: %+v", got)
	}
}
