// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/hookgate/hookgate/test/process"
)

// released returns the directory of a release's files.
func released(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"-version", "v0.1.0", "-kustomize", process.Program(t, "HOOKGATE_KUSTOMIZE"),
		"-source", filepath.Join("..", "..", "..", "deploy", "release"), "-output", dir}, flags...)
	if out, err := exec.Command(process.Program(t, "HOOKGATE_RELEASE"), args...).CombinedOutput(); err != nil {
		t.Fatalf("release: %v\n%s", err, out)
	}
	return dir
}

// TestPackage loads the chart of a release as Helm does, and compares it with that of the repository.
func TestPackage(t *testing.T) {
	packed, err := loader.LoadFile(filepath.Join(released(t), "hookgate-0.1.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if m := packed.Metadata; m.Name != "hookgate" || m.Version != "0.1.0" || m.AppVersion != "v0.1.0" {
		t.Errorf("it is %s %s of the version %s, want hookgate 0.1.0 of the version v0.1.0", m.Name, m.Version, m.AppVersion)
	}
	want := render(t, load(t), namespace, values{"monitoring": true, "image": values{"tag": "v0.1.0"}})
	compare(t, want, render(t, packed, namespace, values{"monitoring": true}))
	var names []string
	for _, file := range packed.Raw {
		names = append(names, file.Name)
	}
	for _, name := range []string{"Chart.yaml", "values.yaml", "values.schema.json", "templates/NOTES.txt", "files/register.yaml"} {
		if !slices.Contains(names, name) {
			t.Errorf("it lacks %s, and has %v", name, names)
		}
	}
}

// TestPackageNamesAnotherImage packs the chart for a registry of one's own.
func TestPackageNamesAnotherImage(t *testing.T) {
	packed, err := loader.LoadFile(filepath.Join(released(t, "-image", "registry.example.com:5000/hookgate"), "hookgate-0.1.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := template(packed, namespace, values{})
	if err != nil {
		t.Fatal(err)
	}
	want := "image: \"registry.example.com:5000/hookgate:v0.1.0\"\n"
	if deployment := files["hookgate/templates/deployment.yaml"]; !strings.Contains(deployment, want) {
		t.Errorf("it lacks %s in\n%s", want, deployment)
	}
}

// TestGuideLabelsTheNamespace compares the labels that the guide gives the release's namespace with those of kustomize's.
func TestGuideLabelsTheNamespace(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := build(t, kustomization{resources: []string{"overlays/hub-beside-core"}})
	labels, _ := all["v1 Namespace <nil>/hookgate-system"]["metadata"].(map[string]any)["labels"].(map[string]any)
	if len(labels) == 0 {
		t.Fatal("kustomize's namespace has no labels")
	}
	for key, value := range labels {
		if want := key + "=" + value.(string); !strings.Contains(string(guide), want) {
			t.Errorf("docs/deploy.md does not give the namespace the label %s", want)
		}
	}
}
