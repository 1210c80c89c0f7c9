// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver runs a kube-apiserver with etcd that the tests of a package share.
package apiserver

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/test/process"
)

var shared struct {
	sync.Once
	server *envtest.Environment
	err    error
}

// Main runs the tests of a package, stops the server that they shared, and returns the code to exit with.
func Main(m *testing.M) int {
	ctrllog.SetLogger(logr.Discard())
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	code := m.Run()
	if shared.server == nil {
		return code
	}
	if err := shared.server.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop kube-apiserver and etcd: %v\n", err)
		return 1
	}
	return code
}

// Shared starts env with the first test that calls it, and returns that server to all.
func Shared(t testing.TB, env *envtest.Environment) *envtest.Environment {
	t.Helper()
	shared.Do(func() {
		if _, shared.err = env.Start(); shared.err == nil {
			shared.server = env
		}
	})
	if shared.err != nil {
		t.Fatalf("start kube-apiserver and etcd: %v", shared.err)
	}
	return shared.server
}

// New returns a server that has not started yet, with the definitions at some paths, and kinds. Without programs to run
// it, it skips the test.
func New(t testing.TB, paths []string, kinds ...*apiextensionsv1.CustomResourceDefinition) *envtest.Environment {
	t.Helper()
	return &envtest.Environment{
		BinaryAssetsDirectory: process.Program(t, "KUBEBUILDER_ASSETS"),
		CRDDirectoryPaths:     paths,
		CRDs:                  kinds,
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: process.ServerPatience},

		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience,
	}
}
