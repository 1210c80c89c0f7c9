// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

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
		anyKind("Cluster"), anyKind("Machine"), anyKind("MachinePool"))
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
