// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestGenerateProvider checks the objects that clusterctl would install.
func TestGenerateProvider(t *testing.T) {
	r := newRepository(t, false, "v0.1.0", "v0.1.1")
	t.Run("Defaults", func(t *testing.T) {
		raw := decode(t, []byte(variable.ReplaceAllStringFunc(string(read(t,
			filepath.Join(r.dir, providerLabel, "v0.1.1", componentsFile))),
			func(v string) string { return variable.FindStringSubmatch(v)[2] })))
		got := decode(t, []byte(r.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate")))
		if diff := cmp.Diff(names(raw), names(got)); diff != "" {
			t.Errorf("objects (-released +generated):\n%s", diff)
		}
		for _, o := range raw {
			g := pick(t, got, o.GetKind(), o.GetName())
			has := g.GetLabels()
			if _, ok := has["clusterctl.cluster.x-k8s.io"]; !ok ||
				has["cluster.x-k8s.io/provider"] != providerLabel {
				t.Errorf("%s %s: labels are %v", o.GetKind(), o.GetName(), has)
			}
			if o.GetKind() != "CustomResourceDefinition" {
				continue
			}
			// Patterns and expressions have dollar signs, which must be kept.
			if diff := cmp.Diff(o.Object["spec"], g.Object["spec"]); diff != "" {
				t.Errorf("%s: spec (-released +generated):\n%s", o.GetName(), diff)
			}
		}
		settings(t, got, map[string]string{
			"--log-level": "info", "--resync": "1m", "--diagnostics-address": ":8443", "--insecure-diagnostics": "false",
			"--otlp-insecure": "false", "HOOKGATE_OTLP_ENDPOINT": "", "HOOKGATE_WATCH_FILTER": "",
			"--machines": "false", "HOOKGATE_HOOK_JOBS_NAMESPACE": "",
		})
		if rules := optional(t, got); len(rules) != 0 {
			t.Errorf("nothing is turned on, and the gateway has the rights of %v", rules)
		}
	})
	t.Run("Overridden", func(t *testing.T) {
		configured := newRepository(t, false, "v0.1.0")
		configured.config["HOOKGATE_RESYNC"] = "5m"
		configured.config["HOOKGATE_LOG_LEVEL"] = "warn"
		configured.config["HOOKGATE_WATCH_FILTER"] = `"true"`
		env := []string{
			"HOOKGATE_LOG_LEVEL=debug", "HOOKGATE_DIAGNOSTICS_ADDRESS=127.0.0.1:8443",
			"HOOKGATE_OTLP_ENDPOINT=collector.observability.svc:4317", "HOOKGATE_OTLP_INSECURE=true",
			"HOOKGATE_MACHINES=true", "HOOKGATE_CLUSTERS=true", "HOOKGATE_HOOK_JOBS_NAMESPACE=hookgate-jobs",
		}
		got := decode(t, []byte(configured.must(t, env, "generate", "provider", "--runtime-extension",
			"hookgate:v0.1.0")))
		settings(t, got, map[string]string{
			"--log-level": "debug", "--resync": "5m", "--otlp-insecure": "true", "--diagnostics-address": "127.0.0.1:8443",
			"HOOKGATE_OTLP_ENDPOINT": "collector.observability.svc:4317", "HOOKGATE_WATCH_FILTER": "true",
			"--machines": "true", "--clusters": "true", "HOOKGATE_HOOK_JOBS_NAMESPACE": "hookgate-jobs",
		})
		want := []string{namespace + "-hookgate-hookjobs", namespace + "-hookgate-machines"}
		if diff := cmp.Diff(want, optional(t, got)); diff != "" {
			t.Errorf("roles whose rights the gateway has (-want +got):\n%s", diff)
		}
		for _, name := range []string{"hookgateremediations", "hookgateremediationtemplates"} {
			pick(t, got, "CustomResourceDefinition", name+".machines.hookgate.dev")
		}
	})
	t.Run("Describe", func(t *testing.T) {
		got := r.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate:v0.1.0", "--describe")
		for _, want := range []string{"TargetNamespace:    " + namespace, "  - HOOKGATE_LOG_LEVEL", "  - " + image + ":v0.1.0"} {
			if !strings.Contains(got, want+"\n") {
				t.Errorf("it lacks %q:\n%s", want, got)
			}
		}
	})
	t.Run("Raw", func(t *testing.T) {
		if got := r.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate", "--raw"); !strings.Contains(got, "--log-level=${HOOKGATE_LOG_LEVEL:=info}") {
			t.Errorf("there is no variable in\n%s", got)
		}
	})
	t.Run("Mirror", func(t *testing.T) {
		mirrored := newRepository(t, false, "v0.1.0")
		mirrored.config["images"] = map[string]any{providerLabel: map[string]string{"repository": "registry.example.com/mirror"}}
		got := decode(t, []byte(mirrored.must(t, nil, "generate", "provider", "--runtime-extension", "hookgate")))
		if got := container(t, got)["image"]; got != "registry.example.com/mirror/hookgate:v0.1.0" {
			t.Errorf("the image is %v", got)
		}
	})
}

// TestTargetNamespace checks that the components of both providers work in another namespace: nothing in them names the
// usual one, but the names of ClusterRoles, which clusterctl does not change.
func TestTargetNamespace(t *testing.T) {
	r := newRepository(t, false, "v0.1.0")
	r.addInfrastructure(t, "v0.1.0")
	var all []*unstructured.Unstructured
	for _, flag := range []string{"--runtime-extension", "--infrastructure"} {
		got := r.must(t, nil, "generate", "provider", flag, "hookgate:v0.1.0", "--target-namespace", "gateway")
		for _, line := range strings.Split(got, "\n") {
			if _, role, _ := strings.Cut(line, "name: "); strings.Contains(line, namespace) && !strings.HasPrefix(role, namespace+"-") {
				t.Errorf("%s: it still names the namespace %s: %s", flag, namespace, line)
			}
		}
		all = append(all, decode(t, []byte(got))...)
	}
	// The address at which the infrastructure provider calls the gateway is among the names of its certificate.
	address := ""
	for _, a := range container(t, []*unstructured.Unstructured{pick(t, all, "Deployment", "hookgate-infrastructure")})["args"].([]any) {
		if value, ok := strings.CutPrefix(a.(string), "--gateway=grpcs://"); ok {
			address = strings.ReplaceAll(value, "$(POD_NAMESPACE)", "gateway")
		}
	}
	host, port, _ := strings.Cut(address, ":")
	certificate := pick(t, all, "Certificate", "hookgate-serving-cert")
	if served, _, err := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames"); err != nil || !slices.Contains(served, host) || port != "9090" {
		t.Errorf("the provider calls %q, and the gateway has the names %q, %v", address, served, err)
	}
}

// optional returns the names of the ClusterRoles that the one for what variables turn on consists of, by its selectors as
// the API server's aggregation reads them.
func optional(t testing.TB, objects []*unstructured.Unstructured) []string {
	t.Helper()
	whole := &rbacv1.ClusterRole{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(
		pick(t, objects, "ClusterRole", namespace+"-hookgate-optional").Object, whole); err != nil {
		t.Fatal(err)
	}
	binding := pick(t, objects, "ClusterRoleBinding", namespace+"-hookgate-optional")
	if role, _, err := unstructured.NestedString(binding.Object, "roleRef", "name"); err != nil || role != whole.Name {
		t.Errorf("the binding of %s is of %q, %v", whole.Name, role, err)
	}
	var roles []string
	for _, o := range objects {
		for i := range whole.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&whole.AggregationRule.ClusterRoleSelectors[i])
			if err != nil {
				t.Fatal(err)
			}
			if o.GetKind() == "ClusterRole" && selector.Matches(labels.Set(o.GetLabels())) {
				roles = append(roles, o.GetName())
			}
		}
	}
	slices.Sort(roles)
	return roles
}

// names returns the kinds and names of objects.
func names(objects []*unstructured.Unstructured) []string {
	var list []string
	for _, o := range objects {
		list = append(list, o.GetKind()+" "+o.GetName())
	}
	slices.Sort(list)
	return list
}

// pick returns the object of a kind and, unless it is empty, a name.
func pick(t testing.TB, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && (name == "" || o.GetName() == name)
	})
	if i < 0 {
		t.Fatalf("there is no %s %s in %v", kind, name, names(objects))
	}
	return objects[i]
}

// container returns the container of the gateway.
func container(t testing.TB, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(pick(t, objects, "Deployment", "").Object, "spec", "template",
		"spec", "containers")
	if err != nil || len(containers) != 1 {
		t.Fatalf("the Deployment has %d containers, %v", len(containers), err)
	}
	return containers[0].(map[string]any)
}

// settings compares flags and environment variables of the container.
func settings(t testing.TB, objects []*unstructured.Unstructured, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	c := container(t, objects)
	note := func(name string, value any) {
		if _, ok := want[name]; ok {
			got[name], ok = value.(string)
			if !ok {
				t.Errorf("%s is a %T, want a string", name, value)
			}
		}
	}
	for _, a := range c["args"].([]any) {
		flag, value, _ := strings.Cut(a.(string), "=")
		note(flag, value)
	}
	for _, e := range c["env"].([]any) {
		env := e.(map[string]any)
		value, ok := env["value"]
		if !ok {
			value = "" // clusterctl leaves out what is empty
		}
		note(env["name"].(string), value)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}
