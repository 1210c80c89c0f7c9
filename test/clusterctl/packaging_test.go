// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestPackagedExtension follows the page about packaging an extension, and has clusterctl read what it makes.
func TestPackagedExtension(t *testing.T) {
	page := string(read(t, filepath.Join("..", "..", "docs", "packaging.md")))
	block := func(file string) string {
		found := regexp.MustCompile("(?s)```yaml\n(# "+regexp.QuoteMeta(file)+"\n.*?)```").FindAllStringSubmatch(page, -1)
		if len(found) != 1 {
			t.Fatalf("the page has %d blocks %s, want 1", len(found), file)
		}
		return found[0][1]
	}
	// kustomize takes only relative paths of folders, and resolves links itself.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	repository := newRepository(t, false)
	deploy, err := filepath.Abs(filepath.Join("..", "..", "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, deploy)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`github\.com/hookgate/hookgate/deploy(\S*)\?ref=main`).ReplaceAllString(block("kustomization.yaml"), relative+"$1")
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	components, err := exec.Command(program(t, kustomizeVariable), "build", dir).Output()
	if err != nil {
		t.Fatalf("kustomize build: %v", err)
	}
	const label, version = "runtime-extension-acme", "v0.1.0"
	repository.write(t, label, version, componentsFile, components)
	repository.write(t, label, version, "metadata.yaml", []byte(block("metadata.yaml")))
	repository.config["providers"] = []provider{{
		Name: "acme", Type: "RuntimeExtensionProvider", URL: repository.url(label, "latest", componentsFile),
	}}
	if configuration := block("clusterctl.yaml"); !strings.Contains(configuration, "name: acme\n  type: RuntimeExtensionProvider\n") {
		t.Errorf("the page's configuration is not the one that is tried here:\n%s", configuration)
	}

	described := repository.must(t, nil, "generate", "provider", "--runtime-extension", "acme:"+version, "--describe")
	for _, want := range []string{"TargetNamespace:    acme-system", "registry.example.com/acme/extension:v0.1.0", "ghcr.io/hookgate/hookgate"} {
		if !strings.Contains(described, want) {
			t.Errorf("clusterctl's description lacks %q:\n%s", want, described)
		}
	}
	objects := decode(t, []byte(repository.must(t, nil, "generate", "provider", "--runtime-extension", "acme:"+version)))
	for _, o := range objects {
		if got := o.GetLabels()["cluster.x-k8s.io/provider"]; got != label {
			t.Errorf("%s %s: the label of the provider is %q, want %s", o.GetKind(), o.GetName(), got, label)
		}
	}
	containers, _, err := unstructured.NestedSlice(pick(t, objects, "Deployment", "acme-extension").Object, "spec", "template", "spec", "containers")
	if err != nil {
		t.Fatal(err)
	}
	managers := 0
	for _, c := range containers {
		if c.(map[string]any)["name"] == "manager" {
			managers++
		}
	}
	if managers != 1 || len(containers) != 2 {
		t.Errorf("%d of %d containers are the manager, want 1 of 2", managers, len(containers))
	}
}
