// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// objects reads a text as a file.
func objects(t *testing.T, content string) []*unstructured.Unstructured {
	t.Helper()
	all, err := Read([]string{"-"}, strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const liveObjects = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: a, namespace: ns, labels: {of: live}, resourceVersion: "7"}
spec: {clusterName: c, selector: {}, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}, infrastructureRef: {apiGroup: g, kind: k, name: i}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineDeployment
metadata: {name: b, namespace: ns, labels: {of: live}, resourceVersion: "8"}
spec: {clusterName: c, selector: {}, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}, infrastructureRef: {apiGroup: g, kind: k, name: i}}}}
`

// Objects of files hide those of the API server, which is read for all others, and never written to.
func TestFilesHideLiveObjects(t *testing.T) {
	var initial []client.Object
	for _, o := range objects(t, liveObjects) {
		initial = append(initial, o)
	}
	live := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(initial...).Build()
	s, err := New(t.Context(), objects(t, strings.Replace(strings.Split(liveObjects, "---")[0], "of: live", "of: file", 1)), "ns", live)
	if err != nil {
		t.Fatal(err)
	}
	var list clusterv1.MachineDeploymentList
	if err := s.List(t.Context(), &list, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, md := range list.Items {
		got = append(got, md.Name+" of "+md.Labels["of"])
	}
	if want := []string{"a of file", "b of live"}; !slices.Equal(got, want) {
		t.Errorf("it lists %q, want %q", got, want)
	}
	gvk := clusterv1.GroupVersion.WithKind("MachineDeployment")
	if o := s.Original(gvk, client.ObjectKey{Namespace: "ns", Name: "b"}); o == nil || o.GetResourceVersion() == "" {
		t.Errorf("the original of b is %v", o)
	}
	if o := s.Original(gvk, client.ObjectKey{Namespace: "ns", Name: "a"}); o != nil {
		t.Errorf("a is of a file, and has the original %v", o)
	}

	b := list.Items[1].DeepCopy()
	b.Labels["of"] = "render"
	if err := s.Patch(t.Context(), b, client.MergeFrom(&list.Items[1])); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		client.Client
		want string
	}{{s, "render"}, {live, "live"}} {
		md := &clusterv1.MachineDeployment{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(b), md); err != nil || md.Labels["of"] != c.want {
			t.Errorf("b is of %s (%v), want %s", md.Labels["of"], err, c.want)
		}
	}
}

// Objects of Cluster API in v1beta1 are read in v1beta2, and templates in both versions, because a ClusterClass names
// one.
func TestOldObjectsAreConverted(t *testing.T) {
	s, err := New(t.Context(), objects(t, `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c}
spec: {topology: {class: acme, version: v1.35.0}}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: t}
spec: {template: {spec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {v: "4"}}}}}}
`), "ns", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &clusterv1.Cluster{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, c); err != nil || c.Spec.Topology.ClassRef.Name != "acme" {
		t.Errorf("the class is %q (%v)", c.Spec.Topology.ClassRef.Name, err)
	}
	for version, want := range map[string]string{"v1beta1": "map[v:4]", "v1beta2": "[map[name:v value:4]]"} {
		o := &unstructured.Unstructured{}
		o.SetAPIVersion("bootstrap.cluster.x-k8s.io/" + version)
		o.SetKind("KubeadmConfigTemplate")
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "t"}, o); err != nil {
			t.Fatal(err)
		}
		args, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "template", "spec", "joinConfiguration", "nodeRegistration", "kubeletExtraArgs")
		if got := fmt.Sprint(args); got != want {
			t.Errorf("%s has %s, want %s", version, got, want)
		}
	}
}

// The contracts of Cluster API's own kinds are known; those of others are in CustomResourceDefinitions.
func TestContracts(t *testing.T) {
	s, err := New(t.Context(), objects(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: acmecontrolplanes.controlplane.cluster.x-k8s.io, labels: {cluster.x-k8s.io/v1beta1: v1}}
spec: {group: controlplane.cluster.x-k8s.io}
`), "ns", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"acmecontrolplanes.controlplane.cluster.x-k8s.io":    "map[cluster.x-k8s.io/v1beta1:v1]",
		"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io": "map[cluster.x-k8s.io/v1beta1:v1beta1 cluster.x-k8s.io/v1beta2:v1beta2]",
		"hookgateclusters.infrastructure.hookgate.dev":       "map[cluster.x-k8s.io/v1beta2:v1alpha1]",
		"othercontrolplanes.controlplane.cluster.x-k8s.io":   "not found",
	} {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(definition("", nil).GroupVersionKind())
		got := "not found"
		if err := s.Get(t.Context(), client.ObjectKey{Name: name}, m); err == nil {
			got = fmt.Sprint(m.Labels)
		} else if !apierrors.IsNotFound(err) {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Each kind of a provider is in one entry, which says which versions follow a contract of the Cluster API that renders.
func TestProviders(t *testing.T) {
	const most = 100
	if n := len(readProviders()); n == 0 || n > most {
		t.Errorf("there are %d entries, want at most %d", n, most)
	}
	versions := regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?(_v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?)*$`)
	seen := map[string]bool{}
	for _, p := range readProviders() {
		if p.Provider == "" || p.Release == "" || p.Group == "" || len(p.Kinds) == 0 || len(p.Contracts) == 0 {
			t.Errorf("an entry lacks a member: %+v", p)
		}
		for contract, of := range p.Contracts {
			if contract != "v1beta1" && contract != "v1beta2" || !versions.MatchString(of) {
				t.Errorf("%s: the versions %q follow the contract %q", p.Provider, of, contract)
			}
		}
		for _, kind := range p.Kinds {
			if seen[p.Group+kind] || strings.HasSuffix(kind, clusterv1.TemplateSuffix) {
				t.Errorf("%s of %s is there twice, or is a template", kind, p.Group)
			}
			seen[p.Group+kind] = true
		}
	}
}

// What is known of Hookgate's own kinds is what their CustomResourceDefinitions say.
func TestOwnProvider(t *testing.T) {
	files, err := filepath.Glob("../../../../deploy/crd/infrastructure/*templates.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no CustomResourceDefinitions: %v", err)
	}
	own, err := Read(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	const label = "cluster.x-k8s.io/v1beta2"
	for _, o := range own {
		if want := contracts(crd, client.ObjectKeyFromObject(o)); want == nil || want.GetLabels()[label] != o.GetLabels()[label] {
			t.Errorf("%s has the labels %v, and known is %v", o.GetName(), o.GetLabels(), want)
		}
	}
}

// A mistake in a file is said with the file and the line.
func TestFilesSayWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct{ content, want string }{
		"syntax":  {"a: b\n  c: d", "line 2: "},
		"unnamed": {"---\napiVersion: v1\nkind: Namespace\n", "document at line 2: metadata.name is missing"},
		"nokind":  {"a: b", "document at line 1: Object 'Kind' is missing"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read([]string{path}, nil); err == nil || !strings.HasPrefix(err.Error(), "read "+path+": "+tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	_, err := New(t.Context(), objects(t, "{apiVersion: cluster.x-k8s.io/v1beta1, kind: Cluster, metadata: {name: c}, spec: {topologie: {}}}"), "ns", nil)
	if err == nil || !strings.Contains(err.Error(), `convert Cluster "c" to v1beta2`) {
		t.Errorf("an unknown member: %v", err)
	}
}
