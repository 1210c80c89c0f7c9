// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

var infrastructureDir = filepath.Join(filepath.Dir(chartDir), "hookgate-infrastructure")

func loadInfrastructure(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(infrastructureDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestInfrastructureEqualsKustomize compares both ways of installing the infrastructure provider, object by object, with
// the defaults and with settings.
func TestInfrastructureEqualsKustomize(t *testing.T) {
	set := values{
		"image": values{"repository": "registry.example.com/hookgate", "tag": "v0.1.0", "pullPolicy": "Always",
			"pullSecrets": []any{values{"name": "registry"}}},
		"replicas": 3, "args": []any{"--log-level=debug"}, "nodeSelector": values{"disk": "ssd"}, "tolerations": []any{},
		"resources": values{"limits": values{"memory": "1Gi"}}, "env": []any{values{"name": "A", "value": "b"}},
	}
	same := map[string]any{
		"images": []any{map[string]any{
			"name": "ghcr.io/hookgate/hookgate", "newName": "registry.example.com/hookgate", "newTag": "v0.1.0",
		}},
		"replicas": []any{map[string]any{"name": "hookgate-infrastructure", "count": 3}},
		"patches": []any{map[string]any{
			"target": map[string]any{"kind": "Deployment", "name": "hookgate-infrastructure"},
			"patch": `
- {op: replace, path: /spec/template/spec/containers/0/imagePullPolicy, value: Always}
- {op: add, path: /spec/template/spec/imagePullSecrets, value: [{name: registry}]}
- {op: add, path: /spec/template/spec/containers/0/args/-, value: --log-level=debug}
- {op: replace, path: /spec/template/spec/containers/0/resources/limits/memory, value: 1Gi}
- {op: replace, path: /spec/template/spec/containers/0/env/1/value, value: 921MiB}
- {op: add, path: /spec/template/spec/containers/0/env/-, value: {name: A, value: b}}
- {op: add, path: /spec/template/spec/nodeSelector, value: {disk: ssd}}
- {op: remove, path: /spec/template/spec/tolerations}
`,
		}},
	}
	for name, tt := range map[string]struct {
		set        values
		more       map[string]any
		components []string
	}{
		"defaults": {nil, nil, nil}, "settings": {set, same, nil},
		"certificates of its own": {values{"certificates": "self"}, nil, []string{"components/self-certificates/infrastructure"}},
	} {
		t.Run(name, func(t *testing.T) {
			want := build(t, kustomization{resources: []string{"infrastructure"}, components: tt.components, more: tt.more})
			delete(want, "v1 Namespace <nil>/"+namespace) // it exists before the chart is installed
			got := render(t, loadInfrastructure(t), namespace, tt.set)
			keepDefinitions(t, got)
			compare(t, want, got)
		})
	}
}

// TestInfrastructureInAnotherNamespace renders the same objects for a namespace of another name.
func TestInfrastructureInAnotherNamespace(t *testing.T) {
	text, err := yaml.Marshal(render(t, loadInfrastructure(t), namespace, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := objects{}
	if err := yaml.Unmarshal(bytes.ReplaceAll(text, []byte(namespace), []byte("elsewhere")), &want); err != nil {
		t.Fatal(err)
	}
	compare(t, want, render(t, loadInfrastructure(t), "elsewhere", nil))
}

func TestInfrastructureValues(t *testing.T) {
	for _, message := range lint.RunAll(infrastructureDir, nil, namespace).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
	for key := range render(t, loadInfrastructure(t), namespace, values{"crds": false}) {
		if strings.Contains(key, "CustomResourceDefinition") {
			t.Errorf("without definitions, there is %s", key)
		}
	}
	for name, tt := range map[string]struct {
		set  values
		want string
	}{
		"unknown":       {values{"callers": "own"}, "additional properties 'callers' not allowed"},
		"no flag":       {values{"args": []any{"infrastructure"}}, "'infrastructure' does not match pattern '^--[a-z]'"},
		"the namespace": {values{"env": []any{values{"name": "POD_NAMESPACE", "value": "x"}}}, "env: POD_NAMESPACE is set by the chart"},
	} {
		if _, err := template(loadInfrastructure(t), namespace, tt.set); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
