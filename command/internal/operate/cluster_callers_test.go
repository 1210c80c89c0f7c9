// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"testing"

	"github.com/hookgate/hookgate/catalog"
)

// TestHooksOfControlPlane compares the release from which on the control plane gets flags with the first one that calls a
// hook of the control plane's.
func TestHooksOfControlPlane(t *testing.T) {
	for _, release := range catalog.ClusterAPIReleases() {
		_, calls := release.Hook("CanUpdateMachine")
		if older := isOlder("registry.example.com:5000/control-plane:"+release.Name+".3", hooksOfControlPlane); older == calls {
			t.Errorf("%s calls hooks: %t, is left alone: %t", release.Name, calls, older)
		}
	}
	for _, image := range []string{"a:1", "a:1.11", "a:latest", "a", "a:5000/b", "a@sha256:v1.2.3"} {
		if isOlder(image, hooksOfControlPlane) {
			t.Errorf("%s is left alone, and may be new", image)
		}
	}
}
