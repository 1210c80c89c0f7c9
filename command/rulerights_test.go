// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestRuleRights prints what rules in files read, each once, and no more of it than they name.
func TestRuleRights(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules.yaml")
	rule := func(name, params string) string {
		return "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: " + name + "}\nspec:\n  hook: BeforeClusterUpgrade\n" +
			"  params: [" + params + "]\n  fail: [{if: 'true', message: \"'no'\"}]\n---\n"
	}
	content := rule("a", `{name: x, self: true}, {name: other, object: {apiVersion: v1, kind: ConfigMap, namespace: team, name: freeze}}`) +
		rule("b", `{name: x, self: true}, {name: other, objects: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy}}`) +
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got := commandtest.Hookgate(t, "", "rule", "rbac", file, "--service-account", "system/gate")
	if got.Code != cmdline.ExitDone || got.ErrOut != "" {
		t.Fatalf("exit status %d: %s", got.Code, got.ErrOut)
	}
	var lines []string
	for document := range strings.SplitSeq(strings.TrimPrefix(got.Out, "---\n"), "---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Namespace string }
			RoleRef  struct{ Kind string }
			Subjects []struct{ Namespace, Name string }
			Rules    []struct {
				APIGroups, Resources, ResourceNames, Verbs []string
			}
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		line := []string{o.Kind, o.Metadata.Namespace, o.RoleRef.Kind}
		for _, s := range o.Subjects {
			line = append(line, s.Namespace+"/"+s.Name)
		}
		for _, r := range o.Rules {
			line = append(line, strings.Join([]string{
				strings.Join(r.Verbs, ","), strings.Join(r.APIGroups, ","), strings.Join(r.Resources, ","), strings.Join(r.ResourceNames, ","),
			}, ":"))
		}
		lines = append(lines, strings.Join(line, " "))
	}
	want := []string{
		"ClusterRole   list,watch:cluster.x-k8s.io:clusters: list,watch:networking.k8s.io:networkpolicies:",
		"ClusterRoleBinding  ClusterRole system/gate",
		"Role team  list,watch::configmaps:freeze",
		"RoleBinding team Role system/gate",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := commandtest.Hookgate(t, "", "rule", "rbac", file, "--service-account", "gate"); got.Code != cmdline.ExitUsage {
		t.Errorf("a service account without a namespace: exit status %d", got.Code)
	}
}
