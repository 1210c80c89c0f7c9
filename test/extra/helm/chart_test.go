// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

const namespace = "hookgate-system"

// chartDir is the directory of the chart.
var chartDir = filepath.Join("..", "..", "..", "deploy", "helm", "hookgate")

// values are what an operator sets.
type values = map[string]any

func TestMain(m *testing.M) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // Helm logs every link that it follows
	os.Exit(m.Run())
}

// load returns the chart as it is in the repository.
func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// template returns what `helm template` renders for the values, or its error.
func template(c *chart.Chart, in string, set values) (map[string]string, error) {
	options := common.ReleaseOptions{Name: "hookgate", Namespace: in, Revision: 1, IsInstall: true}
	merged, err := util.ToRenderValues(c, set, options, common.DefaultCapabilities.Copy())
	if err != nil {
		return nil, err
	}
	return engine.Render(c, merged)
}

// render returns the objects that the chart installs.
func render(t *testing.T, c *chart.Chart, in string, set values) objects {
	t.Helper()
	files, err := template(c, in, set)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) == ".yaml" {
			text.WriteString("\n---\n" + files[name])
		}
	}
	return decode(t, text.String())
}

func TestLint(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, message := range lint.RunAll(chartDir, c.set, namespace).Messages {
				if message.Severity > support.InfoSev {
					t.Error(message)
				}
			}
		})
	}
}

// TestSchemaKnowsTheValues compares the values with the schema, in which a value that is missing would be refused.
func TestSchemaKnowsTheValues(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Properties map[string]schema `json:"properties"`
	}
	var top schema
	if err := json.Unmarshal(text, &top); err != nil {
		t.Fatal(err)
	}
	delete(top.Properties, "global") // Helm's own
	defaults := load(t).Values
	for name, compared := range map[string]struct {
		schema schema
		values values
	}{
		"the top":   {top, defaults},
		"the image": {top.Properties["image"], defaults["image"].(values)},
	} {
		wanted, got := slices.Sorted(maps.Keys(compared.schema.Properties)), slices.Sorted(maps.Keys(compared.values))
		if !slices.Equal(wanted, got) {
			t.Errorf("at %s, values.yaml has %v, and its schema %v", name, got, wanted)
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	c := load(t)
	for name, test := range map[string]struct {
		set  values
		want string
	}{
		"an unknown value":          {values{"replicaCount": 3}, "additional properties 'replicaCount' not allowed"},
		"an unknown value of image": {values{"image": values{"name": "x"}}, "at '/image': additional properties 'name' not allowed"},
		"an unknown installation": {values{"installation": "sidecar"},
			"at '/installation': value must be one of 'hub-beside-core', 'hub-alone', 'reader-beside-core', 'directory'"},
		"unknown callers":                          {values{"callers": "all"}, "at '/callers': value must be one of 'issued', 'own', 'anonymous'"},
		"replicas as text":                         {values{"replicas": "2"}, "at '/replicas': got string, want integer"},
		"replicas below zero":                      {values{"replicas": -1}, "at '/replicas': minimum: got -1, want 0"},
		"a switch as text":                         {values{"monitoring": "true"}, "at '/monitoring': got string, want boolean"},
		"an argument that is no flag":              {values{"args": []any{"serve"}}, "at '/args/0': 'serve' does not match pattern '^--[a-z]'"},
		"a repository with a digest":               {values{"image": values{"repository": "a@sha256:b"}}, "at '/image/repository'"},
		"a tag with a space":                       {values{"image": values{"tag": "v 1"}}, "at '/image/tag'"},
		"a tag of 129 characters":                  {values{"image": values{"tag": strings.Repeat("v", 129)}}, "at '/image/tag'"},
		"a digest that is cut off":                 {values{"image": values{"digest": "sha256:" + strings.Repeat("a", 63)}}, "at '/image/digest'"},
		"an environment without a name":            {values{"env": []any{values{"value": "x"}}}, "at '/env/0': missing property 'name'"},
		"the namespace as a variable":              {values{"env": []any{values{"name": "POD_NAMESPACE", "value": "x"}}}, "env: POD_NAMESPACE is set by the chart"},
		"a quantity that is a list":                {values{"resources": values{"limits": values{"memory": []any{}}}}, "at '/resources/limits/memory'"},
		"a manifest whose name is a path":          {values{"extensionConfigs": values{"a/b.yaml": ""}}, "'a/b.yaml' does not match pattern"},
		"a manifest that is an object":             {values{"extensionConfigs": values{"a.yaml": values{}}}, "at '/extensionConfigs/a.yaml': got object, want string"},
		"an autoscaler that has nothing to choose": {values{"maxReplicas": 2}, "replicas is 2 and maxReplicas is 2: replicas must be at least 1 and less than maxReplicas; maxReplicas 0 means no autoscaler"},
		"an autoscaler of no replica":              {values{"replicas": 0, "maxReplicas": 2}, "replicas is 0 and maxReplicas is 2: replicas must be at least 1 and less than maxReplicas; maxReplicas 0 means no autoscaler"},
		"oneNamespace of a directory": {values{"installation": "directory", "oneNamespace": true},
			"oneNamespace is for the installations hub-beside-core and hub-alone: directory reads no Secrets"},
		"Jobs of a reader": {values{"installation": "reader-beside-core", "hookJobs": true},
			"hookJobs is for the installations hub-beside-core and hub-alone: reader-beside-core writes nothing to the cluster"},
		"Machines of a reader": {values{"installation": "reader-beside-core", "machines": true},
			"machines is for the installations hub-beside-core and hub-alone: reader-beside-core writes nothing to the cluster"},
		"monitoring of a reader": {values{"installation": "reader-beside-core", "monitoring": true},
			"monitoring is for the installations hub-beside-core and hub-alone"},
		"metrics of a hub":            {values{"metrics": true}, "metrics is for the installation directory: hub-beside-core has them already"},
		"metrics of a reader":         {values{"installation": "reader-beside-core", "metrics": true}, "reader-beside-core does not serve them"},
		"manifests of a hub":          {values{"extensionConfigs": values{"a.yaml": ""}}, "extensionConfigs is for the installation directory"},
		"registration of another hub": {values{"installation": "hub-alone", "register": true}, "register is for the installation hub-beside-core, not hub-alone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template(c, namespace, test.set)
			if err == nil {
				t.Fatalf("not refused; want %q", test.want)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("refused with %q, want %q", err, test.want)
			}
		})
	}
}

// TestLargestTagAndDigest renders what TestBadValuesAreRefused goes one beyond.
func TestLargestTagAndDigest(t *testing.T) {
	c := load(t)
	tag, digest := strings.Repeat("v", 128), "sha256:"+strings.Repeat("a", 64)
	for name, test := range map[string]struct {
		image values
		want  string
	}{
		"tag":                      {values{"tag": tag}, "ghcr.io/hookgate/hookgate:" + tag},
		"digest instead of a tag":  {values{"tag": tag, "digest": digest}, "ghcr.io/hookgate/hookgate@" + digest},
		"repository with its port": {values{"repository": "registry.example.com:5000/hookgate"}, "registry.example.com:5000/hookgate:dev"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := template(c, namespace, values{"image": test.image})
			if err != nil {
				t.Fatal(err)
			}
			if deployment := files["hookgate/templates/deployment.yaml"]; !strings.Contains(deployment, `image: "`+test.want+"\"\n") {
				t.Errorf("the image is not %s in\n%s", test.want, deployment)
			}
		})
	}
}
