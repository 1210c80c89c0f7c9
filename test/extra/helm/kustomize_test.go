// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/process"
)

// objects are objects by their apiVersion, kind, namespace and name.
type objects map[string]map[string]any

// separator is the line between two documents.
var separator = regexp.MustCompile(`(?m)^---\n`)

func decode(t *testing.T, text string) objects {
	t.Helper()
	decoded := objects{}
	for _, document := range separator.Split(text, -1) {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if object == nil { // nothing, or comments
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		key := fmt.Sprintf("%v %v %v/%v", object["apiVersion"], object["kind"], metadata["namespace"], metadata["name"])
		if _, again := decoded[key]; again {
			t.Errorf("%s is there twice", key)
		}
		decoded[key] = object
	}
	return decoded
}

// kustomization is what a case has kustomize build.
type kustomization struct {
	resources, components []string // below deploy/
	more                  map[string]any
}

// build returns the objects that kustomize makes.
func build(t *testing.T, k kustomization) objects {
	t.Helper()
	program := process.Program(t, "HOOKGATE_KUSTOMIZE")
	// kustomize takes only relative paths of folders, and resolves links itself.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs(filepath.Join("..", "..", "..", "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, deploy)
	if err != nil {
		t.Fatal(err)
	}
	below := func(names []string) []string {
		var paths []string
		for _, name := range names {
			paths = append(paths, filepath.Join(relative, name))
		}
		return paths
	}
	file := map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
		"resources": below(k.resources), "components": below(k.components),
	}
	maps.Copy(file, k.more)
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, "build", "--load-restrictor=LoadRestrictionsNone", dir)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kustomize build: %v\n%s", err, stderr.String())
	}
	return decode(t, string(out))
}

// hubs, and all installations, with the overlays of the same names.
var (
	hubs          = []string{"hub-beside-core", "hub-alone"}
	installations = []string{"hub-beside-core", "hub-alone", "reader-beside-core", "directory"}
)

// A chartCase is an installation that both the chart and kustomize can make.
type chartCase struct {
	name string
	set  values
	kustomization
	without []string // beginnings of the keys of objects that kustomize alone makes
}

// cases are the installations that are compared.
var cases = makeCases()

func makeCases() []chartCase {
	made := []chartCase{{name: "defaults", kustomization: kustomization{resources: []string{"overlays/hub-beside-core"}}}}
	add := func(name, installation string, set values, components ...string) *chartCase {
		set = maps.Clone(set)
		set["installation"] = installation
		made = append(made, chartCase{name: installation + name, set: set, kustomization: kustomization{
			resources: []string{"overlays/" + installation}, components: components,
		}})
		return &made[len(made)-1]
	}
	for _, installation := range installations {
		add("", installation, values{})
		add(", a CA of one's own", installation, values{"callers": "own"}, "components/client-certificates")
		add(", anonymous callers", installation, values{"callers": "anonymous"}, "components/anonymous-callers")
		add(", autoscaling", installation, values{"maxReplicas": 4}, "components/autoscaling")
		add(", settings", installation, settings).more = settingsOfKustomize
		self := "components/self-certificates/without-webhooks"
		if slices.Contains(hubs, installation) {
			self = "components/self-certificates/" + installation
		}
		add(", certificates of its own", installation, values{"certificates": "self"}, self)
		add(", certificates of its own for anonymous callers", installation, values{"certificates": "self", "callers": "anonymous"},
			"components/anonymous-callers", self)
	}
	for _, installation := range hubs {
		add(", one namespace", installation, values{"oneNamespace": true}, "components/one-namespace")
		add(", Jobs", installation, values{"hookJobs": true}, "components/jobs")
		add(", Machines", installation, values{"machines": true}, "components/machines")
		add(", Clusters", installation, values{"clusters": true}, "components/clusters")
		monitored := add(", monitoring", installation, values{"monitoring": true})
		monitored.resources = append(monitored.resources, "monitoring")
		guarded := add(", upgrade guard", installation, values{"upgradeGuard": true})
		guarded.resources = append(guarded.resources, "upgrade-guard")
	}
	registered := add(", registered", "hub-beside-core", values{"register": true})
	registered.resources = append(registered.resources, "release/register.yaml")
	add(", metrics", "directory", values{"metrics": true}, "components/metrics")
	add(", ExtensionConfigs", "directory", values{"extensionConfigs": values{"acme.yaml": "kind: ExtensionConfig\n"}}).more = map[string]any{
		"configMapGenerator": []any{map[string]any{
			"name": "hookgate-extension-configs", "namespace": namespace, "behavior": "merge",
			"literals": []string{"acme.yaml=kind: ExtensionConfig\n"},
		}},
		"generatorOptions": map[string]any{"disableNameSuffixHash": true},
	}
	add(", less", "hub-beside-core", values{"crds": false, "networkPolicy": false, "podDisruptionBudget": false}).without = []string{
		"apiextensions.k8s.io/v1 CustomResourceDefinition", "networking.k8s.io/v1 NetworkPolicy", "policy/v1 PodDisruptionBudget",
	}
	return made
}

// settings are the values of the Deployment, and settingsOfKustomize what says the same to kustomize.
var (
	settings = values{
		"image": values{"repository": "registry.example.com/hookgate", "tag": "v0.1.0", "pullPolicy": "Always",
			"pullSecrets": []any{values{"name": "registry"}}},
		"replicas":          3,
		"args":              []any{"--log-level=debug", "--resync=2m"},
		"resources":         values{"limits": values{"memory": "512Mi", "cpu": 2}, "requests": values{"cpu": "1"}},
		"nodeSelector":      values{"disk": "ssd"},
		"affinity":          values{"nodeAffinity": values{}},
		"priorityClassName": "system-cluster-critical",
		"tolerations":       []any{},
		"podAnnotations":    values{"a.example.com/b": "true"},
		"podLabels":         values{"team": "red"},
	}
	settingsOfKustomize = map[string]any{
		"images": []any{map[string]any{
			"name": "ghcr.io/hookgate/hookgate", "newName": "registry.example.com/hookgate", "newTag": "v0.1.0",
		}},
		"replicas": []any{map[string]any{"name": "hookgate", "count": 3}},
		"patches": []any{map[string]any{
			"target": map[string]any{"kind": "Deployment", "name": "hookgate"},
			"patch": `
- {op: replace, path: /spec/template/spec/containers/0/imagePullPolicy, value: Always}
- {op: add, path: /spec/template/spec/imagePullSecrets, value: [{name: registry}]}
- {op: add, path: /spec/template/spec/containers/0/args/-, value: --log-level=debug}
- {op: add, path: /spec/template/spec/containers/0/args/-, value: --resync=2m}
- {op: add, path: /spec/template/spec/containers/0/resources/limits/cpu, value: 2}
- {op: replace, path: /spec/template/spec/containers/0/resources/requests/cpu, value: "1"}
- {op: add, path: /spec/template/spec/nodeSelector, value: {disk: ssd}}
- {op: add, path: /spec/template/spec/affinity, value: {nodeAffinity: {}}}
- {op: add, path: /spec/template/spec/priorityClassName, value: system-cluster-critical}
- {op: remove, path: /spec/template/spec/tolerations}
- {op: add, path: /spec/template/metadata/annotations/a.example.com~1b, value: "true"}
- {op: add, path: /spec/template/metadata/labels/team, value: red}
`,
		}},
	}
)

// TestChartEqualsKustomize compares both ways of installing, object by object.
func TestChartEqualsKustomize(t *testing.T) {
	c := load(t)
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			want := build(t, test.kustomization)
			// The release's namespace exists before the chart is installed: docs/deploy.md says with which labels.
			maps.DeleteFunc(want, func(key string, _ map[string]any) bool {
				return key == "v1 Namespace <nil>/hookgate-system" ||
					slices.ContainsFunc(test.without, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
			})
			got := render(t, c, namespace, test.set)
			keepDefinitions(t, got)
			maps.DeleteFunc(got, isReleaseHook) // kustomize has nothing that runs before it removes objects
			compare(t, want, got)
		})
	}
}

// TestAnotherNamespace compares an installation in another namespace, for which kustomize needs patches.
func TestAnotherNamespace(t *testing.T) {
	c := load(t)
	for _, installation := range installations {
		t.Run(installation, func(t *testing.T) {
			set := values{"installation": installation, "monitoring": slices.Contains(hubs, installation), "upgradeGuard": true}
			text, err := yaml.Marshal(render(t, c, namespace, set))
			if err != nil {
				t.Fatal(err)
			}
			want := objects{}
			if err := yaml.Unmarshal(bytes.ReplaceAll(text, []byte(namespace), []byte("elsewhere")), &want); err != nil {
				t.Fatal(err)
			}
			compare(t, want, render(t, c, "elsewhere", set))
		})
	}
}

// isReleaseHook reports whether Helm makes an object only when it uninstalls the chart.
func isReleaseHook(_ string, object map[string]any) bool {
	annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
	return annotations["helm.sh/hook"] == "pre-delete"
}

func compare(t *testing.T, want, got objects) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kustomize's objects (-) and the chart's (+):\n%s", diff)
	}
}

// keepDefinitions removes the annotation that keeps definitions when the chart is uninstalled, and requires it.
func keepDefinitions(t *testing.T, all objects) {
	t.Helper()
	const policy = "helm.sh/resource-policy"
	for key, object := range all {
		annotations, _ := object["metadata"].(map[string]any)["annotations"].(map[string]any)
		if isDefinition := object["kind"] == "CustomResourceDefinition"; isDefinition != (annotations[policy] == "keep") {
			t.Errorf("%s: the annotation %s is %v", key, policy, annotations[policy])
		}
		if delete(annotations, policy); len(annotations) == 0 {
			delete(object["metadata"].(map[string]any), "annotations")
		}
	}
}

// TestEveryManifestIsCompared requires a case for everything that kustomize can install, except for what no chart does.
func TestEveryManifestIsCompared(t *testing.T) {
	compared := map[string]string{
		"overlays/sidecar":   "a template of a team's own extension",
		"components/sidecar": "compared with the chart hookgate-sidecar",
		"components/cluster": "part of the overlays of hubs",

		"components/self-certificates":                "has a component for each overlay",
		"components/self-certificates/hub":            "part of the components of hubs",
		"components/self-certificates/infrastructure": "compared with the chart hookgate-infrastructure",
		"infrastructure":                              "compared with the chart hookgate-infrastructure",
	}
	for _, c := range cases {
		for _, name := range append(c.resources, c.components...) {
			compared[name] = "compared"
		}
	}
	for _, pattern := range []string{"overlays/*", "components/*", "components/self-certificates/*", "infrastructure", "monitoring", "upgrade-guard"} {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", "deploy", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d, %v", pattern, len(found), err)
		}
		for _, dir := range found {
			name, err := filepath.Rel(filepath.Join("..", "..", "..", "deploy"), dir)
			if err != nil {
				t.Fatal(err)
			}
			if compared[filepath.ToSlash(name)] == "" {
				t.Errorf("deploy/%s is not compared with the chart: make it a value, with a case", name)
			}
		}
	}
}
