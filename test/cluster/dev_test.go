// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// TestServeDev runs `serve --dev` of the image beside an extension. The image has no directory for certificates.
func TestServeDev(t *testing.T) {
	all(t)
	applyFile(t, "dev.yaml")
	t.Cleanup(func() { kubectl(t, "delete", "-f", node.file("dev.yaml")) })
	awaitOutput(t, "hookgate call", "logs", "dev", "-c", "gateway")
}
