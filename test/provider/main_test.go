// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/apiserver"
)

func TestMain(m *testing.M) { os.Exit(apiserver.Main(m)) }

// sharedServer returns the API server of most tests.
func sharedServer(t testing.TB) *envtest.Environment {
	t.Helper()
	return apiserver.Shared(t, environment(t))
}

// environment returns an API server that has not started yet, with the kinds of infrastructure and of Cluster API.
// Without programs to run it, it skips the test.
func environment(t testing.TB) *envtest.Environment {
	t.Helper()
	return apiserver.New(t, []string{filepath.Join("..", "..", "deploy", "crd", "infrastructure")},
		anykind.OfClusterAPI("Cluster"), anykind.OfClusterAPI("Machine"), anykind.OfClusterAPI("MachinePool"))
}
