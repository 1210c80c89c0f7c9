// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
)

// extensionChart returns the chart of an extension that depends on the library chart as an author's does.
func extensionChart(t *testing.T) *chart.Chart {
	t.Helper()
	sidecar, err := loader.LoadDir(filepath.Join(filepath.Dir(chartDir), "hookgate-sidecar"))
	if err != nil {
		t.Fatal(err)
	}
	acme := &chart.Chart{
		Metadata: &chart.Metadata{
			APIVersion: "v2", Name: "acme", Version: "0.1.0",
			Dependencies: []*chart.Dependency{{Name: "hookgate-sidecar", Version: "0.0.0"}},
		},
		Templates: []*common.File{{Name: "templates/deployment.yaml", Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: acme-extension
spec:
  template:
    spec:
      {{- include "hookgate-sidecar.pod" . | nindent 6 }}
      containers:
      {{- include "hookgate-sidecar.container" . | nindent 6 }}
      - name: extension
        image: registry.example.com/acme/extension:v1
      volumes:
      {{- include "hookgate-sidecar.volume" . | nindent 6 }}
`)}},
	}
	acme.AddDependency(sidecar)
	return acme
}

// podOf returns the spec of the Pods of the only Deployment, with the container of the gateway alone.
func podOf(t *testing.T, all objects) map[string]any {
	t.Helper()
	for key, object := range all {
		if !strings.Contains(key, " Deployment ") {
			continue
		}
		spec := object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
		pod := map[string]any{"enableServiceLinks": spec["enableServiceLinks"], "volumes": spec["volumes"]}
		for _, c := range spec["containers"].([]any) {
			if c.(map[string]any)["name"] == "hookgate" {
				pod["hookgate"] = c
			}
		}
		return pod
	}
	t.Fatal("there is no Deployment")
	return nil
}

// TestSidecarEqualsKustomize compares what the library chart adds to a Deployment with what the component adds.
func TestSidecarEqualsKustomize(t *testing.T) {
	want := podOf(t, build(t, kustomization{resources: []string{"overlays/sidecar"}}))
	if diff := cmp.Diff(want, podOf(t, render(t, extensionChart(t), namespace, nil))); diff != "" {
		t.Errorf("(-kustomize +chart)\n%s", diff)
	}
}

func TestSidecarValues(t *testing.T) {
	of := func(set values) values { return values{"hookgate-sidecar": set} }
	for name, tt := range map[string]struct {
		set  values
		want string
	}{
		"socket":   {values{"extension": "unix:///run/acme/acme.sock"}, "--sidecar=unix:///run/acme/acme.sock"},
		"digest":   {values{"image": values{"digest": "sha256:" + strings.Repeat("a", 64)}}, "hookgate@sha256:aaaa"},
		"argument": {values{"args": []any{"--log-level=debug"}}, `- "--log-level=debug"`},
		"variable": {values{"env": []any{values{"name": "HOOKGATE_LOG_LEVEL", "value": "debug"}}}, "name: HOOKGATE_LOG_LEVEL"},
		"memory":   {values{"resources": values{"limits": values{"memory": "512Mi"}}}, "value: 460MiB"},
		"secret":   {values{"certificateSecret": "acme-tls"}, "name: acme-tls"},
	} {
		files, err := template(extensionChart(t), namespace, of(tt.set))
		if err != nil || !strings.Contains(files["acme/templates/deployment.yaml"], tt.want) {
			t.Errorf("%s: %v, want %s in\n%s", name, err, tt.want, files["acme/templates/deployment.yaml"])
		}
	}
	for name, tt := range map[string]struct {
		set  values
		want string
	}{
		"elsewhere": {values{"extension": "grpc://acme.example:9090"}, "at '/extension'"},
		"unknown":   {values{"replicas": 2}, "additional properties 'replicas' not allowed"},
		"no flag":   {values{"args": []any{"serve"}}, "at '/args/0': 'serve' does not match pattern '^--[a-z]'"},
	} {
		if _, err := template(extensionChart(t), namespace, of(tt.set)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
