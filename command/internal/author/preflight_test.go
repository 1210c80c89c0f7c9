// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/preflight"
)

// upgrade is the directory that docs/upgrading.md uses.
const upgrade = "../../../examples/upgrade"

// from112 holds the flags of the page's upgrade.
func from112(more ...string) []string {
	return append([]string{"preflight", "--for", "cluster-api=v1.14.0", "--from", "cluster-api=v1.12.4", "--extension-configs", upgrade}, more...)
}

func TestPreflightOutput(t *testing.T) {
	for _, format := range []string{cmdline.FormatTable, cmdline.FormatJSON, "policies"} {
		got := commandtest.Hookgate(t, "", from112("-o", format)...)
		if want := "hookgate: cluster-api=v1.14: 3 findings of level break or unknown\n"; got.Code != cmdline.ExitFailed || got.ErrOut != want {
			t.Errorf("%s: exit status %d: %s", format, got.Code, got.ErrOut)
		}
		commandtest.Golden(t, "preflight/upgrade."+format, got.Out)
	}
	// Back again, an extension for v1.14 loses what v1.12 has and it does not.
	got := commandtest.Hookgate(t, "", "preflight", "--for", "cluster-api=v1.12.4", "--from", "cluster-api=v1.14.0", "--extension-configs", upgrade)
	for _, want := range []string{"after-cluster-upgrade.fresh   AfterClusterUpgrade   members-lost", "lost      cluster.spec.", " more; -o json has them all", "clusterAPIVersion: v1beta2"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("no %q in\n%s", want, got.Out)
		}
	}
	got = commandtest.Hookgate(t, "", "preflight", "--for", "hookgate=v0.1.0", "--extension-configs", upgrade)
	if want := "hookgate: hookgate=v0.1.0: 1 finding of level unknown\n"; got.Code != cmdline.ExitFailed || got.ErrOut != want {
		t.Errorf("exit status %d: %s", got.Code, got.ErrOut)
	}
	commandtest.Golden(t, "preflight/gateway.table", got.Out)
}

func TestPreflightSARIF(t *testing.T) {
	got := commandtest.Hookgate(t, "", from112("-o", "sarif")...)
	report, err := sarif.FromBytes([]byte(got.Out), sarif.WithStrictValidation())
	if err != nil {
		t.Fatalf("%v in\n%s", err, got.Out)
	}
	if err := report.Validate(); err != nil {
		t.Fatal(err)
	}
	if n := len(report.Runs[0].Results); n != 9 {
		t.Errorf("%d results, want those that are not ok", n)
	}
	for _, want := range []string{`"uri": "../../../examples/upgrade/acme.yaml"`, `"startLine": 12`, `"level": "error"`, `"ruleId": "objects-change"`} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("no %s in\n%s", want, got.Out)
		}
	}
}

// upgraded copies the directory of the page, without the extension of which nothing is known, and writes more manifests
// into it.
func upgraded(t *testing.T, more map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob(filepath.Join(upgrade, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		if filepath.Base(f) == "late.yaml" {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		more[filepath.Base(f)] = string(text)
	}
	for name, text := range more {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPreflight(t *testing.T) {
	policies := commandtest.Hookgate(t, "", from112("-o", "policies")...).Out
	forAll := policies[strings.Index(policies, "---\n")+4:]
	to114 := []string{"--for", "cluster-api=v1.14.0", "--from", "cluster-api=v1.12.4"}
	for name, tt := range map[string]struct {
		reason string
		more   map[string]string
		args   []string
		code   int
		out    []string
		not    string
	}{
		"Applied":     {"the policies that it proposes are the remedy", map[string]string{"p.yaml": policies}, to114, cmdline.ExitDone, []string{"0 break, 0 degrade, 4 warn, 2 ok"}, "Policies to apply"},
		"ForAll":      {"one policy for all is not enough for in-place handlers", map[string]string{"p.yaml": forAll}, to114, cmdline.ExitDone, []string{"warn      can-update-machine.acme", "never-sent", "members-lost", "machine.spec.minReadySeconds", "acme-can-update-machine-cluster-api"}, "objects-change"},
		"FailOnWarn":  {"a warning counts where it shall", map[string]string{"p.yaml": policies}, append(to114, "--fail-on", "warn"), cmdline.ExitFailed, []string{"4 warn"}, ""},
		"NoFrom":      {"without --from, the current version is unknown", nil, []string{"--for", "cluster-api=v1.14.0"}, cmdline.ExitDone, []string{"not-stated", "5 warn"}, "objects-change"},
		"Both":        {"both targets at once", nil, append(to114, "--for", "hookgate=v0.1.0"), cmdline.ExitFailed, []string{"cluster-api=v1.14, hookgate=v0.1.0 from cluster-api=v1.12 (--from): "}, ""},
		"BadManifest": {"what cannot be read may be anything", map[string]string{"z.yaml": "kind: ExtensionConfig\napiVersion: runtime.cluster.x-k8s.io/v1beta2\nmetadata: {name: z}\nspec: {clientConfig: {}}\n"}, to114, cmdline.ExitFailed, []string{"unreadable", `z.yaml:4`, "must have url or service"}, ""},
		"Conflict":    {"a policy that is not in effect is no statement", map[string]string{"p.yaml": policies, "q.yaml": strings.ReplaceAll(policies, "-cluster-api", "-zzz")}, to114, cmdline.ExitDone, []string{"policy-ignored", `ExtensionPolicy "acme-cluster-api", which comes first by name, is also for ExtensionConfig "acme"`}, ""},
		"Rule":        {"a rule reads objects, too", map[string]string{"p.yaml": policies, "r.yaml": commandtest.LintRule("r", "BeforeClusterUpgrade", `"no"`)}, to114, cmdline.ExitFailed, []string{"break   rule.r", "objects-change", "set spec.clusterAPIVersion of the HookRule to the version whose members it reads", "ExtensionConfigs, 1 HookRule: "}, "r-cluster-api"},
		"RuleStates":  {"a rule that states its version gets that", map[string]string{"p.yaml": policies, "r.yaml": commandtest.LintRule("r", "BeforeClusterUpgrade", `"no"`) + "  clusterAPIVersion: v1beta2\n"}, to114, cmdline.ExitDone, []string{"ok      rule.r", "1 HookRule: 0 break"}, ""},
		"BrokenRule":  {"what does not compile may hold anything", map[string]string{"p.yaml": policies, "r.yaml": commandtest.LintRule("r", "BeforeClusterUpgrade", "request.nothing")}, to114, cmdline.ExitFailed, []string{"unreadable", "r.yaml:7", "undefined field 'nothing'"}, ""},
		"Empty":       {"nothing is registered", nil, append(to114, "--extension-configs", t.TempDir()), cmdline.ExitFailed, nil, "LEVEL"},
	} {
		t.Run(name, func(t *testing.T) {
			more := map[string]string{}
			maps.Copy(more, tt.more)
			got := commandtest.Hookgate(t, "", append([]string{"preflight", "--extension-configs", upgraded(t, more)}, tt.args...)...)
			if got.Code != tt.code {
				t.Errorf("%s: exit status %d, want %d: %s", tt.reason, got.Code, tt.code, got.ErrOut)
			}
			for _, want := range tt.out {
				if !strings.Contains(got.Out, want) {
					t.Errorf("%s: no %q in\n%s", tt.reason, want, got.Out)
				}
			}
			if nothing := strings.Contains(got.ErrOut, "there is nothing to judge: "); nothing != (name == "Empty") {
				t.Errorf("%s: %s", tt.reason, got.ErrOut)
			}
			if tt.not != "" && strings.Contains(got.Out, tt.not) {
				t.Errorf("%s: there is %q in\n%s", tt.reason, tt.not, got.Out)
			}
		})
	}
}

// TestPreflightDiscover: extensions are called over the network, and one that does not answer is reported.
func TestPreflightDiscover(t *testing.T) {
	url, caFile := checked(t, goodAnswer)
	ca, err := os.ReadFile(caFile)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := func(name, url string) {
		text := fmt.Sprintf("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: %s}\nspec: {clientConfig: {url: %q, caBundle: %s}}\n",
			name, url, base64.StdEncoding.EncodeToString(ca))
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config("live", url)
	config("dead", "https://127.0.0.1:1")
	got := commandtest.Hookgate(t, "", "preflight", "--for", "cluster-api=v1.14.0", "--from", "cluster-api=v1.12.0", "--extension-configs", dir, "--discover", "-o", "json")
	var report preflight.Report
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil || got.Code != cmdline.ExitFailed {
		t.Fatalf("exit status %d, %v: %s%s", got.Code, err, got.Out, got.ErrOut)
	}
	if len(report.Findings) != 3 || report.Findings[0].Rule != "objects-change" || report.Findings[0].Handler != "create" ||
		report.Findings[1].Rule != "not-discovered" || !strings.Contains(report.Findings[1].Problem, "connection refused") ||
		report.Findings[2].Rule != "requests-change" {
		t.Errorf("got %+v", report.Findings)
	}
}

// An extension that could not be asked is no success, alone or beside others, and the status of its manifest makes up
// for it.
func TestPreflightUnknown(t *testing.T) {
	const config = "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\n" +
		"spec: {clientConfig: {url: \"https://127.0.0.1:1\"}}\n"
	const known = config + "status: {handlers: [{name: can.acme, requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: CanUpdateMachine}}]}\n"
	for name, tt := range map[string]struct {
		manifest string
		args     []string
		code     int
		want     string
	}{
		"Alone":      {config, nil, cmdline.ExitFailed, "0 break, 1 unknown, 0 degrade, 0 warn, 0 ok"},
		"Asked":      {config, []string{"--discover"}, cmdline.ExitFailed, "0 break, 1 unknown, 0 degrade, 0 warn, 0 ok"},
		"Gateway":    {config, []string{"--for", "hookgate=v0.1.0"}, cmdline.ExitFailed, "0 break, 1 unknown, 0 degrade, 0 warn, 0 ok"},
		"Stricter":   {config, []string{"--fail-on", "degrade"}, cmdline.ExitFailed, "1 unknown"},
		"FromStatus": {known, []string{"--discover"}, 0, "0 break, 0 degrade, 2 warn, 0 ok"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "acme.yaml"), []byte(tt.manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			got := commandtest.Hookgate(t, "", append([]string{"preflight", "--for", "cluster-api=v1.14.0", "--extension-configs", dir}, tt.args...)...)
			if got.Code != tt.code || !strings.Contains(got.Out, tt.want) {
				t.Errorf("exit status %d: %s%s, want %d and %s", got.Code, got.Out, got.ErrOut, tt.code, tt.want)
			}
			if tt.code != 0 && tt.args == nil && !strings.Contains(got.ErrOut, "1 finding of level unknown") {
				t.Errorf("got %s", got.ErrOut)
			}
		})
	}
}

func TestPreflightMistakes(t *testing.T) {
	file := commandtest.WriteFile(t, "file", "")
	commandtest.NoKubeconfig(t)
	directory := func(args ...string) []string { return append([]string{"--extension-configs", upgrade}, args...) }
	const target = "cluster-api=v1.14.0"
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"NoTarget":      {directory(), cmdline.ExitUsage, "--for is required: cluster-api=VERSION, or hookgate=VERSION"},
		"UnknownCAPI":   {directory("--for", "cluster-api=v1.99.0"), cmdline.ExitUsage, "--for: release v1.99.0 of Cluster API is not known here; the known ones are v1.8, v1.9, v1.10, v1.11, v1.12, v1.13, v1.14, and v1.15 (announced)\n"},
		"UnknownSelf":   {directory("--for", "hookgate=v7.0.0"), cmdline.ExitUsage, "--for: release v7.0.0 of Hookgate is not known here; the known ones are v0.1.0"},
		"UnknownThing":  {directory("--for", "kubernetes=v1.34"), cmdline.ExitUsage, `--for: "kubernetes=v1.34": want cluster-api=VERSION or hookgate=VERSION`},
		"Twice":         {directory("--for", target, "--for", "cluster-api=v1.13.0"), cmdline.ExitUsage, "cluster-api has a target already"},
		"FromWhat":      {directory("--for", target, "--from", "v1.12.0"), cmdline.ExitUsage, `--from "v1.12.0": want cluster-api=VERSION`},
		"FromUnknown":   {directory("--for", target, "--from", "cluster-api=v1.2.0"), cmdline.ExitUsage, "--from: release v1.2.0 of Cluster API is not known here"},
		"NoSource":      {[]string{"--for", target}, cmdline.ExitUsage, "there is no cluster to connect to: want --kubeconfig FILE, or $KUBECONFIG, or ~/.kube/config"},
		"TwoSources":    {directory("--for", target, "--kubeconfig", "x"), cmdline.ExitUsage, "--extension-configs cannot be used with --kubeconfig or --context"},
		"RecordPart":    {[]string{"--for", target, "--kubeconfig", "x", "--record", "--watch-filter", "a"}, cmdline.ExitUsage, "--record needs all registrations of a cluster"},
		"RecordFiles":   {directory("--for", target, "--record"), cmdline.ExitUsage, "--record needs all registrations of a cluster"},
		"RecordAhead":   {[]string{"--for", "cluster-api=v1.15.0", "--kubeconfig", "x", "--record"}, cmdline.ExitUsage, "--record: this hookgate knows Cluster API v1.15 only from announcements"},
		"Discover":      {[]string{"--for", target, "--kubeconfig", "x", "--discover"}, cmdline.ExitUsage, "use it with --extension-configs"},
		"Group":         {[]string{"--for", target, "--kubeconfig", "x", "--extension-config-group", "x"}, cmdline.ExitUsage, "--extension-config-group: want runtime.cluster.x-k8s.io or runtime.hookgate.dev"},
		"Output":        {directory("--for", target, "-o", "yaml"), cmdline.ExitUsage, `--output "yaml": want table, json, sarif or policies`},
		"FailOn":        {directory("--for", target, "--fail-on", "ok"), cmdline.ExitUsage, `--fail-on "ok": want break, degrade or warn`},
		"Timeout":       {directory("--for", target, "--timeout", "0s"), cmdline.ExitUsage, "--timeout: want more than 0"},
		"Argument":      {directory("--for", target, "x"), cmdline.ExitUsage, `want no arguments, got "x"`},
		"NoDirectory":   {[]string{"--for", target, "--extension-configs", "none"}, cmdline.ExitFailed, `preflight: read directory "none": no such file or directory`},
		"NotADirectory": {[]string{"--for", target, "--extension-configs", file}, cmdline.ExitFailed, "not a directory"},
		"NoKubeconfig":  {[]string{"--for", target, "--kubeconfig", "none"}, cmdline.ExitFailed, "preflight: kubeconfig: stat none: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"preflight"}, tt.args...)...)
			if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) || got.Out != "" {
				t.Errorf("exit status %d, want %d; want %q in\n%s%s", got.Code, tt.code, tt.want, got.ErrOut, got.Out)
			}
		})
	}
}
