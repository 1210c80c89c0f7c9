// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// allVariable names the directory that scripts/build-cluster-all fills, for the tests that run before a release only,
// because they take longer than all others: make test-cluster-all.
const allVariable = "HOOKGATE_CLUSTER_ALL"

// all is hub for these tests.
func all(t *testing.T) {
	t.Helper()
	onlyInAll(t)
	hub(t)
}

func onlyInAll(t *testing.T) {
	t.Helper()
	if skipped != "" {
		t.Skip(skipped)
	}
	if os.Getenv(allVariable) == "" {
		t.Skip("it runs before a release: make test-cluster-all")
	}
}

// program returns the path of a program of that directory.
func program(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv(allVariable), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}
