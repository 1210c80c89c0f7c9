// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"testing"
)

// whole is hub for what runs before a release only, with HOOKGATE_CLUSTER_WHOLE=1: it takes longer than all the rest.
func whole(t *testing.T) {
	t.Helper()
	if os.Getenv("HOOKGATE_CLUSTER_WHOLE") == "" {
		t.Skip("HOOKGATE_CLUSTER_WHOLE is not set: it runs before a release")
	}
	hub(t)
}
