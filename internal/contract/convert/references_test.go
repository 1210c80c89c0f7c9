// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/hook"
)

func TestAPIVersion(t *testing.T) {
	const infrastructure = "infrastructure.cluster.x-k8s.io"
	cases := map[string]struct {
		reason string
		crds   []CRD
		group  string
		kind   string
		want   string
		err    string
	}{
		"newest contract": {
			reason: "versions of contract v1beta2 have priority over v1beta1's",
			crds: []CRD{{Name: "acmeclusters." + infrastructure, Labels: map[string]string{
				"cluster.x-k8s.io/v1beta1": "v1beta1_v3", "cluster.x-k8s.io/v1beta2": "v1beta2",
			}}},
			group: infrastructure, kind: "AcmeCluster", want: infrastructure + "/v1beta2",
		},
		"newest version": {
			reason: "versions are compared as Kubernetes compares them, not as strings, and in any order",
			crds: []CRD{{Name: "acmeclusters." + infrastructure, Labels: map[string]string{
				"cluster.x-k8s.io/v1beta2": "v1beta2_v10_v2_v1alpha1",
			}}},
			group: infrastructure, kind: "AcmeCluster", want: infrastructure + "/v10",
		},
		"old contract": {
			reason: "a provider of contract v1beta1 still works with Cluster API v1.14",
			crds: []CRD{{Name: "acmeclusters." + infrastructure, Labels: map[string]string{
				"cluster.x-k8s.io/v1beta1": "v1alpha3_v1alpha4", "cluster.x-k8s.io/v1alpha3": "v1alpha2",
			}}},
			group: infrastructure, kind: "AcmeCluster", want: infrastructure + "/v1alpha4",
		},
		"plural": {
			reason: "names are made as Cluster API makes them",
			crds: []CRD{{Name: "acmeproxies." + infrastructure,
				Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}}},
			group: infrastructure, kind: "AcmeProxy", want: infrastructure + "/v1",
		},
		"own provider": {
			reason: "what Cluster API ships is known without a definition",
			group:  "controlplane.cluster.x-k8s.io", kind: "KubeadmControlPlane", want: "controlplane.cluster.x-k8s.io/v1beta2",
		},
		"own provider, read": {
			reason: "a definition says more than the table",
			crds: []CRD{{Name: "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", Labels: map[string]string{
				"cluster.x-k8s.io/v1beta1": "v1beta1",
			}}},
			group: "controlplane.cluster.x-k8s.io", kind: "KubeadmControlPlane", want: "controlplane.cluster.x-k8s.io/v1beta1",
		},
		"Hookgate's, read": {
			reason: "a newer provider may be installed than the gateway knows",
			crds: []CRD{{Name: "hookgatemachines.infrastructure.hookgate.dev", Labels: map[string]string{
				"cluster.x-k8s.io/v1beta2": "v1alpha1_v1beta1",
			}}},
			group: "infrastructure.hookgate.dev", kind: "HookgateMachine", want: "infrastructure.hookgate.dev/v1beta1",
		},
		"Hookgate's class": {
			reason: "no object of Cluster API refers to it",
			group:  "infrastructure.hookgate.dev", kind: "InfrastructureClass",
			err: `cannot look up the version of kind "InfrastructureClass" in group "infrastructure.hookgate.dev": install the ` +
				`CustomResourceDefinition "infrastructureclasses.infrastructure.hookgate.dev" in the cluster, or add its manifest to ` +
				`the directory of ExtensionConfigs`,
		},
		"unknown": {
			reason: "the text says what to do",
			group:  infrastructure, kind: "AcmeCluster",
			err: `cannot look up the version of kind "AcmeCluster" in group "infrastructure.cluster.x-k8s.io": install the ` +
				`CustomResourceDefinition "acmeclusters.infrastructure.cluster.x-k8s.io" in the cluster, or add its manifest to the ` +
				`directory of ExtensionConfigs`,
		},
		"without labels": {
			reason: "Cluster API refuses such definitions too",
			crds: []CRD{{Name: "acmeclusters." + infrastructure,
				Labels: map[string]string{"cluster.x-k8s.io/v1beta2": ""}}},
			group: infrastructure, kind: "AcmeCluster",
			err: `cannot look up the version of kind "AcmeCluster" in group "infrastructure.cluster.x-k8s.io": the CustomResourceDefinition ` +
				`"acmeclusters.infrastructure.cluster.x-k8s.io" has neither label cluster.x-k8s.io/v1beta2 nor cluster.x-k8s.io/v1beta1`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refs := NewReferences()
			refs.Set(tc.crds)
			got, err := refs.APIVersion(tc.group, tc.kind)
			if err != nil && (hook.KindOf(err) != hook.Conversion || err.Error() != tc.err) || err == nil && tc.err != "" {
				t.Fatalf("%s: error %v, want %q of kind Conversion", tc.reason, err, tc.err)
			}
			if got != tc.want {
				t.Fatalf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// Hookgate's own kinds are known without their definitions, in the version that these state.
func TestOwnKinds(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "deploy", "crd", "infrastructure", "infrastructure.hookgate.dev_hookgate*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %d definitions, %v", len(files), err)
	}
	refs := NewReferences()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Group string
				Names struct{ Kind string }
			}
		}
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatal(err)
		}
		want := crd.Spec.Group + "/" + contractVersion(crd.Metadata.Labels)
		if got, err := refs.APIVersion(crd.Spec.Group, crd.Spec.Names.Kind); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", crd.Spec.Names.Kind, got, err, want)
		}
	}
}

func TestSetReplaces(t *testing.T) {
	refs := NewReferences()
	for _, v := range []string{"v1", "v2"} {
		refs.Set([]CRD{{Name: "acmes.acme.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": v}}})
		if got, err := refs.APIVersion("acme.io", "Acme"); err != nil || got != "acme.io/"+v {
			t.Errorf("got %q, %v, want acme.io/%s", got, err, v)
		}
	}
	refs.Set(nil)
	if got, err := refs.APIVersion("acme.io", "Acme"); err == nil {
		t.Errorf("got %q after the definition was removed, want an error", got)
	}
}
