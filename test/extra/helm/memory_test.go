// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"math"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// limitsOfMemory are values of resources.limits.memory, and what the chart makes of them.
var limitsOfMemory = []struct {
	limit any
	want  string // empty for none
}{
	{"512Mi", "460MiB"},
	{"1Gi", "921MiB"},
	{"1.5Gi", "1382MiB"},
	{".5Gi", "460MiB"},
	{"2.Gi", "1843MiB"},
	{"1G", "858MiB"},
	{"0.5G", "429MiB"},
	{"500M", "429MiB"},
	{"1000000k", "858MiB"},
	{"524288Ki", "460MiB"},
	{"1Ti", "943718MiB"},
	{"2T", "1716613MiB"},
	{"1Pi", "966367641MiB"},
	{"1P", "858306884MiB"},
	{"7Ei", "6926923254988MiB"},
	{"1E", "858306884765MiB"},
	{"536870912", "460MiB"},
	{"536870912000m", "460MiB"},
	{"5e8", "429MiB"},
	{"1E9", "858MiB"},
	{"0.5e9", "429MiB"},
	{536870912, "460MiB"},
	{5e8, "429MiB"},
	{float64(1 << 40), "943718MiB"},
	{"1165084Ki", "1023MiB"}, // nine tenths are a little less than 1024 MiB
	{"1165085.0Ki", "1024MiB"},

	{"1165085", "1MiB"}, // the least of which nine tenths are a mebibyte
	{"1165085000m", "1MiB"},
	{"1165084", ""},
	{"1m", ""},
	{0, ""},
	{"0", ""},
	{"8Ei", "7916483719987MiB"},
	{"99Ei", ""}, // the runtime refuses to start with what no int64 holds
	{"1e99", ""},

	{"", ""},
	{"half", ""},
	{"512MiB", ""},
	{"512mi", ""},
	{"512 Mi", ""},
	{"1e3Mi", ""},
	{"-512Mi", ""},
	{"Mi", ""},
	{"1.2.3Gi", ""},
	{"99999999999999999999", ""},
	{"512Mi\nx: y", ""},
}

// TestGoMemoryLimit checks that the memory limit of Go's runtime is nine tenths of that of the container, in whatever form
// Kubernetes takes it, and is left out if it cannot be read.
func TestGoMemoryLimit(t *testing.T) {
	c := load(t)
	for _, tt := range limitsOfMemory {
		t.Run(fmt.Sprintf("%v", tt.limit), func(t *testing.T) {
			if got := environment(t, c, values{"resources": values{"limits": values{"memory": tt.limit}}})["GOMEMLIMIT"]; got != tt.want {
				t.Fatalf("GOMEMLIMIT is %q, want %q", got, tt.want)
			}
			if tt.want == "" {
				return
			}
			text := fmt.Sprint(tt.limit)
			if f, ok := tt.limit.(float64); ok {
				text = fmt.Sprintf("%.0f", f)
			}
			quantity, err := resource.ParseQuantity(text)
			if err != nil {
				t.Fatalf("it is no quantity: %v", err)
			}
			nineTenths := math.Floor(quantity.AsApproximateFloat64() * 0.9 / (1 << 20))
			if want := fmt.Sprintf("%.0fMiB", nineTenths); want != tt.want {
				t.Errorf("nine tenths of it are %s, want %s", want, tt.want)
			}
		})
	}
}

// TestGoMemoryLimitOfOnesOwn checks that there is one GOMEMLIMIT, or none.
func TestGoMemoryLimitOfOnesOwn(t *testing.T) {
	c := load(t)
	for name, tt := range map[string]struct {
		set  values
		want string
	}{
		"in env":        {values{"env": []any{values{"name": "GOMEMLIMIT", "value": "100MiB"}}}, "100MiB"},
		"no resources":  {values{"resources": nil}, ""},
		"no limits":     {values{"resources": values{"limits": nil}}, ""},
		"no limit":      {values{"resources": values{"limits": values{"memory": nil}}}, ""},
		"another limit": {values{"resources": values{"limits": values{"memory": nil, "cpu": 2}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := environment(t, c, tt.set)["GOMEMLIMIT"]; got != tt.want {
				t.Errorf("GOMEMLIMIT is %q, want %q", got, tt.want)
			}
		})
	}
}

// environment returns the environment variables of the gateway. None may be there twice.
func environment(t *testing.T, c *chart.Chart, set values) map[string]string {
	t.Helper()
	files, err := template(c, namespace, set)
	if err != nil {
		t.Fatal(err)
	}
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Env []struct{ Name, Value string }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(files["hookgate/templates/deployment.yaml"]), &deployment); err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for _, v := range deployment.Spec.Template.Spec.Containers[0].Env {
		if _, again := variables[v.Name]; again {
			t.Errorf("%s is there twice", v.Name)
		}
		variables[v.Name] = v.Value
	}
	return variables
}
