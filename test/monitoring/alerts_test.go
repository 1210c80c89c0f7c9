// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/infrastructure"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// The files of deploy/monitoring, and what goes with them.
var (
	root     = filepath.Join("..", "..")
	manifest = filepath.Join(root, "deploy", "monitoring", "prometheusrule.yaml")
	runbooks = filepath.Join(root, "docs", "runbooks.md")
	units    = filepath.Join("testdata", "alerts.yaml")
)

// rule is a rule of a PrometheusRule, which Prometheus reads in the same form.
type rule struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	Annotations map[string]string `json:"annotations"`
}

// rules returns the rules, and the file that Prometheus reads them from.
func rules(t *testing.T) (found []rule, file []byte) {
	t.Helper()
	var o struct {
		Spec struct {
			Groups []struct {
				Rules []rule `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}
	var whole struct {
		Spec any `json:"spec"`
	}
	text := read(t, manifest)
	for _, into := range []any{&o, &whole} {
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range o.Spec.Groups {
		found = append(found, g.Rules...)
	}
	file, err := yaml.Marshal(whole.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return found, file
}

func alerts(t *testing.T) []rule {
	t.Helper()
	all, _ := rules(t)
	return slices.DeleteFunc(all, func(r rule) bool { return r.Alert == "" })
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRules has promtool check the rules, and run the unit tests of the alerts.
func TestRules(t *testing.T) {
	promtool := process.Program(t, "HOOKGATE_PROMTOOL")
	_, file := rules(t)
	dir := t.TempDir()
	for name, text := range map[string][]byte{"rules.yaml": file, "alerts.yaml": read(t, units)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "rules.yaml"}, {"test", "rules", "alerts.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestUnitTestsOfAlerts requires that of each alert the unit tests have a time at which it fires, and one at which it
// does not.
func TestUnitTestsOfAlerts(t *testing.T) {
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name     string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal(read(t, units), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, a := range test.Alerts {
			if len(a.Expected) > 0 {
				fires[a.Name] = true
			} else {
				silent[a.Name] = true
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: unit tests see it fire: %t, and see that it does not: %t", a.Alert, fires[a.Alert], silent[a.Alert])
		}
	}
}

// TestRunbooks requires a section of the runbooks for each alert, to which it leads, and no other.
func TestRunbooks(t *testing.T) {
	const page = "https://github.com/hookgate/hookgate/blob/main/docs/runbooks.md#"
	var want []string
	for _, a := range alerts(t) {
		want = append(want, a.Alert)
		if got := a.Annotations["runbook_url"]; got != page+strings.ToLower(a.Alert) {
			t.Errorf("%s: runbook_url is %s", a.Alert, got)
		}
		for _, annotation := range []string{"summary", "description"} {
			if a.Annotations[annotation] == "" {
				t.Errorf("%s has no %s", a.Alert, annotation)
			}
		}
	}
	var got []string
	for _, section := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllSubmatch(read(t, runbooks), -1) {
		got = append(got, string(section[1]))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sections of %s (-want +got):\n%s", runbooks, diff)
	}
}

// TestMetricsOfRulesExist requires that the rules name metrics and labels that the gateway has.
func TestMetricsOfRulesExist(t *testing.T) {
	var page strings.Builder
	metrics := observe.NewMetrics(prometheus.NewRegistry(), registry.New(), catalog.New(), "")
	if err := errors.Join(metrics.Document(&page), infrastructure.DocumentMetrics(&page)); err != nil {
		t.Fatal(err)
	}
	all, _ := rules(t)
	for _, r := range all {
		for _, name := range regexp.MustCompile(`\bhookgate_\w+`).FindAllString(r.Expr, -1) {
			if !strings.Contains(page.String(), "| `"+strings.TrimSuffix(name, "_bucket")+"` |") {
				t.Errorf("%s%s: there is no metric %s", r.Alert, r.Record, name)
			}
		}
	}
}
