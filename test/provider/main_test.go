// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/hookgate/hookgate/test/process"
)

// assetsVariable names the folder with kube-apiserver and etcd.
const assetsVariable = "KUBEBUILDER_ASSETS"

// shared is the API server of most tests, which starts with the first of them.
var shared struct {
	sync.Once
	server *envtest.Environment
	err    error
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
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

// sharedServer returns the API server of most tests.
func sharedServer(t testing.TB) *envtest.Environment {
	t.Helper()
	env := environment(t)
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

// environment returns an API server that has not started yet, with the kinds of infrastructure and of Cluster API.
// Without programs to run it, it skips the test.
func environment(t testing.TB) *envtest.Environment {
	t.Helper()
	return &envtest.Environment{
		BinaryAssetsDirectory: process.Program(t, assetsVariable),
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "deploy", "crd", "infrastructure")},
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{anyKind("Cluster"), anyKind("Machine"), anyKind("MachinePool")},
		ErrorIfCRDPathMissing: true,
		CRDInstallOptions:     envtest.CRDInstallOptions{MaxTime: process.ServerPatience},

		ControlPlaneStartTimeout: process.ServerPatience, ControlPlaneStopTimeout: process.ServerPatience,
	}
}

// anyKind returns a definition of a kind of Cluster API that takes every spec and status.
func anyKind(kind string) *apiextensionsv1.CustomResourceDefinition {
	plural, open := strings.ToLower(kind)+"s", true
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = plural + "." + clusterv1.GroupVersion.Group
	d.Spec.Group, d.Spec.Scope = clusterv1.GroupVersion.Group, apiextensionsv1.NamespaceScoped
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind}
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: clusterv1.GroupVersion.Version, Served: true, Storage: true,
		Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: &open,
		}},
	}}
	return d
}
