// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "hookgate-system"
	image     = "ghcr.io/hookgate/hookgate"
)

// guide is the path of the guide to installing with clusterctl.
var guide = filepath.Join("..", "..", "docs", "clusterctl.md")

// TestReleaseKeepsTheContract checks the components of both providers against clusterctl's contract.
func TestReleaseKeepsTheContract(t *testing.T) {
	dir := released(t, "v0.1.0")
	for file, label := range map[string]string{componentsFile: providerLabel, infrastructureFile: infrastructureLabel} {
		t.Run(label, func(t *testing.T) { keepsTheContract(t, decode(t, read(t, filepath.Join(dir, file))), label) })
	}
}

func keepsTheContract(t *testing.T, objects []*unstructured.Unstructured, label string) {
	t.Helper()
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.GetKind()]++
		name := o.GetKind() + " " + o.GetName()
		if got := o.GetLabels()["cluster.x-k8s.io/provider"]; got != label {
			t.Errorf("%s: label cluster.x-k8s.io/provider is %q, want %s", name, got, label)
		}
		switch {
		case slices.Contains(clusterScoped, o.GetKind()):
			if o.GetNamespace() != "" {
				t.Errorf("%s is in namespace %s, and has none", name, o.GetNamespace())
			}
		case o.GetNamespace() != namespace:
			t.Errorf("%s is in namespace %q, want %s", name, o.GetNamespace(), namespace)
		}
		if strings.HasPrefix(o.GetKind(), "ClusterRole") && !strings.HasPrefix(o.GetName(), namespace+"-") {
			t.Errorf("%s: clusterctl deletes it only if its name starts with %s-", name, namespace)
		}
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("%s has %d containers, %v", name, len(containers), err)
		}
		c := containers[0].(map[string]any)
		if diff := gocmp.Diff([]any{"manager", image + ":v0.1.0"}, []any{c["name"], c["image"]}); diff != "" {
			t.Errorf("%s: name and image (-want +got):\n%s", name, diff)
		}
		seen := map[string]bool{}
		for _, a := range c["args"].([]any) {
			flag, _, _ := strings.Cut(a.(string), "=")
			if seen[flag] {
				t.Errorf("%s: %s is there twice", name, flag)
			}
			seen[flag] = true
		}
	}
	for _, kind := range []string{"Namespace", "Deployment"} {
		if kinds[kind] != 1 {
			t.Errorf("there are %d objects of kind %s, want 1", kinds[kind], kind)
		}
	}
	if kinds["CustomResourceDefinition"] == 0 {
		t.Error("there is no CustomResourceDefinition")
	}
}

// TestRegisterPointsAtTheGateway compares the registration with Cluster API with the installed gateway.
func TestRegisterPointsAtTheGateway(t *testing.T) {
	dir := released(t, "v0.1.0")
	components := decode(t, read(t, filepath.Join(dir, componentsFile)))
	register := decode(t, read(t, filepath.Join(dir, "register.yaml")))
	target, _, err := unstructured.NestedMap(register[0].Object, "spec", "clientConfig", "service")
	if err != nil {
		t.Fatal(err)
	}
	service := pick(t, components, "Service", target["name"].(string))
	ports, _, err := unstructured.NestedSlice(service.Object, "spec", "ports")
	if err != nil || target["namespace"] != service.GetNamespace() ||
		!slices.ContainsFunc(ports, func(p any) bool { return p.(map[string]any)["port"] == target["port"] }) {
		t.Errorf("it points at %v, the Service is in %s and has the ports %v, %v", target, service.GetNamespace(),
			ports, err)
	}
	secret := register[0].GetAnnotations()["runtime.cluster.x-k8s.io/inject-ca-from-secret"]
	if !slices.ContainsFunc(components, func(o *unstructured.Unstructured) bool {
		name, _, err := unstructured.NestedString(o.Object, "spec", "secretName")
		return err == nil && o.GetKind() == "Certificate" && o.GetNamespace()+"/"+name == secret
	}) {
		t.Errorf("the CA is to come from the secret %s, which no Certificate writes", secret)
	}
}

// TestReleaseIsReproducible writes a release twice.
func TestReleaseIsReproducible(t *testing.T) {
	first, second := released(t, "v0.1.0"), released(t, "v0.1.0")
	files := []string{
		componentsFile, infrastructureFile, "metadata.yaml", "register.yaml", "jobs.yaml", "hooks.openapi.json",
		"infrastructure.openapi.json", "machines.openapi.json", "hookgate-0.1.0.tgz",
		"hookgate-infrastructure-0.1.0.tgz", "hookgate-sidecar-0.1.0.tgz", "hookgate-man-pages.tar.gz", "SHA256SUMS",
		"cluster-template.yaml", "cluster-template-machinepool.yaml", "cluster-template-topology.yaml",
		"clusterclass-hookgate.yaml",
	}
	for _, file := range files {
		if diff := gocmp.Diff(string(read(t, filepath.Join(first, file))), string(read(t, filepath.Join(second, file)))); diff != "" {
			t.Errorf("%s (-first +second):\n%s", file, diff)
		}
	}
	cmd := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = first
	if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), ": OK\n") != len(files)-1 {
		t.Errorf("sha256sum --check: %v\n%s", err, out)
	}
}

// TestReleaseHasTheDocuments compares the OpenAPI documents of a release with those that the gateway serves, of all groups.
func TestReleaseHasTheDocuments(t *testing.T) {
	release := released(t, "v0.1.0")
	documents, err := filepath.Glob(filepath.Join("..", "..", "gen", "openapi", "*.json"))
	if err != nil || len(documents) < 3 {
		t.Fatalf("gen/openapi has %v, %v", documents, err)
	}
	for _, document := range documents {
		file := filepath.Base(document)
		got := read(t, filepath.Join(release, file))
		if want := read(t, document); !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, and not the %d of gen/openapi", file, len(got), len(want))
		}
	}
}

func TestReleaseRefuses(t *testing.T) {
	shape := "want a semantic version with a leading v"
	for name, tc := range map[string]struct {
		reason, version, want string
	}{
		"Nothing":      {"a release has a version", "", shape},
		"Describe":     {"what git describe says between two tags is no version", "4d54491-dirty", shape},
		"NoV":          {"clusterctl and Go's proxy know versions with a v", "0.1.0", shape},
		"TwoNumbers":   {"a semantic version has three numbers", "v0.1", shape},
		"LeadingZero":  {"semantic versions have no leading zeros", "v0.01.0", shape},
		"Build":        {"an image's tag cannot have a plus", "v0.1.0+1", shape},
		"WordsAround":  {"the whole of it is a version", "v0.1.0 ", shape},
		"NoSuchSeries": {"clusterctl would refuse to install it", "v7.3.0", "there is no release series 7.3"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, stderr, err := release(t, tc.version)
			if err == nil || !strings.Contains(stderr, tc.want) {
				t.Errorf("%s: release %q: %v, %q, want %q", tc.reason, tc.version, err, stderr, tc.want)
			}
			if files, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(files) != 0 {
				t.Errorf("%s: it wrote %v, %v", tc.reason, files, err)
			}
		})
	}
	for _, version := range []string{"v0.1.0", "v0.1.10", "v0.1.0-rc.1", "v0.1.0-alpha-2.0"} {
		if _, stderr, err := release(t, version); err != nil {
			t.Errorf("release %s: %v\n%s", version, err, stderr)
		}
	}
}

// TestReleaseNamesAnotherImage renders with the name that `make image IMAGE_NAME=…` gives.
func TestReleaseNamesAnotherImage(t *testing.T) {
	dir, stderr, err := release(t, "v0.1.0", "-image", "registry.example.com:5000/team/hookgate")
	if err != nil {
		t.Fatalf("release: %v\n%s", err, stderr)
	}
	components := string(read(t, filepath.Join(dir, componentsFile)))
	if !strings.Contains(components, "image: registry.example.com:5000/team/hookgate:v0.1.0\n") ||
		strings.Contains(components, image) {
		t.Error("the components do not name the image")
	}
}

var (
	variable = regexp.MustCompile(`\$\{([^}:=]*)(?::=([^}]*))?\}`)
	row      = regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| (`[^`]*`|none|required) \\| (gateway|infrastructure|both|templates) \\|")
)

// TestVariablesAreDocumented compares the variables of all files of a release with the table of the guide: their
// defaults, and which files have them.
func TestVariablesAreDocumented(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(released(t, "v0.1.0"), "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	readers := map[string]string{componentsFile: "gateway", infrastructureFile: "infrastructure"}
	found := map[string]string{}
	for _, file := range files {
		text, name := string(read(t, file)), filepath.Base(file)
		reader := cmp.Or(readers[name], "templates")
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			value := "none"
			if d := strings.Trim(m[2], `" `); d != "" {
				value = "`" + d + "`"
			} else if !strings.Contains(m[0], ":=") {
				value = "required"
			}
			if reader != "templates" && (!strings.HasPrefix(m[1], "HOOKGATE_") || value == "required") {
				t.Errorf("%s: the variable %s does not start with HOOKGATE_, or has no default", name, m[1])
			}
			by := reader
			if before, ok := found[m[1]]; ok {
				other, was, _ := strings.Cut(before, " ")
				if other != value {
					t.Errorf("%s: the default of %s is %s, and elsewhere %s", name, m[1], value, other)
				}
				if was != reader {
					by = "both"
				}
			}
			found[m[1]] = value + " " + by
		}
		if left := variable.ReplaceAllString(text, ""); strings.Contains(left, "${") || strings.Contains(left, "$$") {
			t.Errorf("%s has a ${ that is no variable, or a $$, which clusterctl changes", name)
		}
	}
	documented := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(read(t, guide)), -1) {
		documented[m[1]] = m[2] + " " + m[3]
	}
	if diff := gocmp.Diff(documented, found); diff != "" || len(found) == 0 {
		t.Errorf("variables (-%s +release):\n%s", guide, diff)
	}
}

// TestGuideConfiguresClusterctl passes the guide's configuration to clusterctl, with versions and paths of its
// repository on GitHub, which clusterctl must be able to list without reaching it.
func TestGuideConfiguresClusterctl(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n# clusterctl.yaml\n(.*?)```").FindAllSubmatch(read(t, guide), -1)
	if len(blocks) == 0 {
		t.Fatalf("%s shows no clusterctl.yaml", guide)
	}
	shown := map[string]bool{}
	for _, block := range blocks {
		r := newRepository(t, false)
		r.config = map[string]any{}
		if err := yaml.UnmarshalStrict(block[1], &r.config); err != nil {
			t.Fatalf("%s: %v", guide, err)
		}
		if _, ok := r.config["providers"]; !ok {
			continue
		}
		got := r.must(t, nil, "config", "repositories")
		known := regexp.MustCompile(`(?m)^hookgate +(\S+) +https://github\.com/hookgate/hookgate/releases/latest/ +(\S+)$`)
		m := known.FindStringSubmatch(got)
		if m == nil {
			t.Errorf("clusterctl knows these providers:\n%s\nwant one that matches %s", got, known)
			continue
		}
		shown[m[1]+" "+m[2]] = true
	}
	want := map[string]bool{
		"RuntimeExtensionProvider " + componentsFile: true, "InfrastructureProvider " + infrastructureFile: true,
	}
	if diff := gocmp.Diff(want, shown); diff != "" {
		t.Errorf("providers of the guide (-want +got):\n%s", diff)
	}
}

// clusterScoped are the kinds of objects that have no namespace and may be among the components. clusterctl has its own
// list of such kinds, and treats every other as namespaced.
var clusterScoped = []string{
	"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
}

// decode reads manifests.
func decode(t testing.TB, manifests []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document, &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}
