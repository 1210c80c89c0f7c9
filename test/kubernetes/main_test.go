// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	"google.golang.org/grpc/grpclog"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// assetsVariable names the folder with kube-apiserver and etcd.
const assetsVariable = "KUBEBUILDER_ASSETS"

// apiServer is the API server of all tests; nil without programs to run it.
var apiServer *envtest.Environment

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctrllog.SetLogger(logr.Discard())
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	assets := os.Getenv(assetsVariable)
	if assets == "" {
		return m.Run()
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", assetsVariable, err)
			return 1
		}
	}
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "deploy", "crd")},
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: process.ServerPatience},

		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience,
	}
	if _, err := env.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "start kube-apiserver and etcd: %v\n", err)
		return 1
	}
	apiServer = env
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stop kube-apiserver and etcd: %v\n", err)
		return 1
	}
	return code
}

// connect returns how to reach the API server, and a client of it that reads past every cache.
func connect(t testing.TB) (*rest.Config, client.Client) {
	t.Helper()
	if apiServer == nil {
		t.Skipf("%s is not set: run `make test-kubernetes`, which builds kube-apiserver and etcd and sets it", assetsVariable)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{rbacv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme, runtimev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(apiServer.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return rest.CopyConfig(apiServer.Config), c
}
