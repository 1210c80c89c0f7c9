// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/process"
)

// The environment variables that name the programs.
const (
	kustomizeVariable = "HOOKGATE_KUSTOMIZE"
	gatewayVariable   = "HOOKGATE_BIN"
)

// Requiring cert-manager's module for two kinds would be too much. These types have the fields of cert-manager.io/v1
// that deploy/ uses.
type (
	certificate struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			IsCA       bool              `json:"isCA"`
			CommonName string            `json:"commonName"`
			SecretName string            `json:"secretName"`
			Duration   metav1.Duration   `json:"duration"`
			DNSNames   []string          `json:"dnsNames"`
			Usages     []string          `json:"usages"`
			IssuerRef  map[string]string `json:"issuerRef"`
			PrivateKey struct {
				Algorithm      string `json:"algorithm"`
				Size           int    `json:"size"`
				RotationPolicy string `json:"rotationPolicy"`
			} `json:"privateKey"`
		} `json:"spec"`
	}
	issuer struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			SelfSigned *struct{} `json:"selfSigned"`
			CA         *struct {
				SecretName string `json:"secretName"`
			} `json:"ca"`
		} `json:"spec"`
	}
)

// kinds maps each kind that may occur to its Go type.
var kinds = map[string]func() metav1.Object{
	"v1/Namespace":                                     func() metav1.Object { return &corev1.Namespace{} },
	"v1/ServiceAccount":                                func() metav1.Object { return &corev1.ServiceAccount{} },
	"v1/ConfigMap":                                     func() metav1.Object { return &corev1.ConfigMap{} },
	"v1/Service":                                       func() metav1.Object { return &corev1.Service{} },
	"apps/v1/Deployment":                               func() metav1.Object { return &appsv1.Deployment{} },
	"policy/v1/PodDisruptionBudget":                    func() metav1.Object { return &policyv1.PodDisruptionBudget{} },
	"autoscaling/v2/HorizontalPodAutoscaler":           func() metav1.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
	"networking.k8s.io/v1/NetworkPolicy":               func() metav1.Object { return &networkingv1.NetworkPolicy{} },
	"cert-manager.io/v1/Certificate":                   func() metav1.Object { return &certificate{} },
	"cert-manager.io/v1/Issuer":                        func() metav1.Object { return &issuer{} },
	"runtime.cluster.x-k8s.io/v1beta2/ExtensionConfig": func() metav1.Object { return &runtimev1.ExtensionConfig{} },
	"apiextensions.k8s.io/v1/CustomResourceDefinition": func() metav1.Object { return &apiextensionsv1.CustomResourceDefinition{} },
	"rbac.authorization.k8s.io/v1/ClusterRole":         func() metav1.Object { return &rbacv1.ClusterRole{} },
	"rbac.authorization.k8s.io/v1/ClusterRoleBinding":  func() metav1.Object { return &rbacv1.ClusterRoleBinding{} },
	"rbac.authorization.k8s.io/v1/Role":                func() metav1.Object { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1/RoleBinding":         func() metav1.Object { return &rbacv1.RoleBinding{} },
	"admissionregistration.k8s.io/v1/MutatingWebhookConfiguration": func() metav1.Object {
		return &admissionregistrationv1.MutatingWebhookConfiguration{}
	},
	"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": func() metav1.Object {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{}
	},
}

// object is one object of a manifest.
type object struct {
	kind     string // apiVersion/kind
	manifest []byte
	metav1.Object
}

// decode reads manifests, and fails on members that are unknown or duplicate.
func decode(t *testing.T, what string, manifests []byte) []object {
	t.Helper()
	var objects []object
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatalf("%s: %v in\n%s", what, err, document)
		}
		o := object{kind: meta.APIVersion + "/" + meta.Kind, manifest: document}
		newObject, ok := kinds[o.kind]
		if !ok {
			t.Errorf("%s: there is a %s, which this test does not know", what, o.kind)
			continue
		}
		o.Object = newObject()
		asJSON, err := yaml.YAMLToJSONStrict(document) // refuses a member that is there twice
		if err != nil {
			t.Errorf("%s: %s: %v", what, o.kind, err)
		}
		// Not encoding/json, which matches names in any case, unlike the API server.
		strict, err := json.UnmarshalStrict(asJSON, o.Object)
		if err := errors.Join(append(strict, err)...); err != nil {
			t.Errorf("%s: %s: %v", what, o.kind, err)
		}
		objects = append(objects, o)
	}
}

// all returns the objects of a type.
func all[T metav1.Object](objects []object) []T {
	var found []T
	for _, o := range objects {
		if typed, ok := o.Object.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// one returns the only object of a type.
func one[T metav1.Object](t *testing.T, objects []object) T {
	t.Helper()
	found := all[T](objects)
	if len(found) != 1 {
		t.Fatalf("there are %d %T, want 1", len(found), *new(T))
	}
	return found[0]
}

// program returns the path of a program that the environment names.
func program(t *testing.T, variable string) string {
	t.Helper()
	path := process.Program(t, variable)
	depend(t, path)
	return path
}

// depend reads the files of another program: go test reuses a cached result unless a file changed that the test itself
// has opened.
func depend(t *testing.T, path string) {
	t.Helper()
	err := filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return f.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kustomize renders a folder.
func kustomize(t *testing.T, dir string) []byte {
	t.Helper()
	path := program(t, kustomizeVariable)
	depend(t, filepath.Join("..", "..", "deploy"))
	var stderr bytes.Buffer
	cmd := exec.Command(path, "build", dir)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kustomize build: %v\n%s", err, stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("kustomize build warns:\n%s", stderr.String())
	}
	return out
}

// guideForRelease is the name of the guide's kustomization for a release.
const guideForRelease = "release/kustomization.yaml"

// guide is the path of the installation guide.
var guide = filepath.Join("..", "..", "docs", "deploy.md")

var (
	block    = regexp.MustCompile("(?s)```yaml\n(.*?)```")
	fileName = regexp.MustCompile(`^# (\S+\.yaml)\n`)
	remote   = regexp.MustCompile(`github\.com/hookgate/hookgate/(deploy/\S+?)\?ref=(?:main|v[0-9.]+)`)
)

// guideFiles returns the files that the guide shows, by name, and the block that adds the component under the name "".
// References to the repository become paths relative to dir.
func guideFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, root)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, match := range block.FindAllStringSubmatch(string(page), -1) {
		name := ""
		if m := fileName.FindStringSubmatch(match[1]); m != nil {
			name = m[1]
		}
		if _, ok := files[name]; ok {
			t.Fatalf("%s shows %q twice", guide, name)
		}
		files[name] = remote.ReplaceAllString(match[1], filepath.ToSlash(relative)+"/$1")
	}
	return files
}

// install renders the guide's installation, optionally with the component.
func install(t *testing.T, component bool) []object {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	files := guideFiles(t, dir)
	if component {
		files["kustomization.yaml"] += files[""]
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if name == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(files["kustomization.yaml"], "github.com") {
		t.Fatalf("the guide's kustomization takes something from the network:\n%s", files["kustomization.yaml"])
	}
	return decode(t, "the installation of the guide", kustomize(t, dir))
}
