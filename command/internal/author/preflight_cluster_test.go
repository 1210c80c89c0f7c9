// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// registered returns what docs/upgrading.md has registered and is discovered, in a cluster where clusterctl has installed Cluster API of
// a version.
func registered(t *testing.T, version string) map[string][]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(upgrade, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]any{}
	for _, file := range files {
		if filepath.Base(file) == "late.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "---\n") {
			var o map[string]any
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				t.Fatal(err)
			}
			resource := map[any]string{"ExtensionConfig": commandtest.ListedConfigs, "ExtensionPolicy": commandtest.ListedPolicies}[o["kind"]]
			lists[resource] = append(lists[resource], o)
		}
	}
	if version != "" {
		lists[commandtest.ListedProviders] = []any{map[string]any{
			"kind": "Provider", "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "type": "CoreProvider", "providerName": "cluster-api", "version": version,
			"metadata": map[string]any{"name": "cluster-api", "namespace": "capi-system"},
		}}
	}
	return lists
}

// withLate adds an extension that has not been discovered.
func withLate(lists map[string][]any) map[string][]any {
	lists[commandtest.ListedConfigs] = append(lists[commandtest.ListedConfigs], map[string]any{
		"kind": "ExtensionConfig", "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "metadata": map[string]any{"name": "late"},
		"spec": map[string]any{"clientConfig": map[string]any{"url": "https://late.example"}},
	})
	return lists
}

// TestPreflightOfACluster checks that both sources get the same verdicts, and the source of the running version.
func TestPreflightOfACluster(t *testing.T) {
	const target = "cluster-api=v1.14.0"
	for name, tt := range map[string]struct {
		lists map[string][]any
		args  []string
		code  int
		out   string
		err   string
	}{
		"running v1.12": {registered(t, "v1.12.4"), nil, cmdline.ExitFailed,
			"from cluster-api=v1.12 (Provider capi-system/cluster-api): ", "hookgate: cluster-api=v1.14: 2 findings of level break\n"},
		"running v1.13": {registered(t, "v1.13.0"), nil, cmdline.ExitDone, "from cluster-api=v1.13 (Provider ", ""},
		"--from wins": {registered(t, "v1.13.0"), []string{"--from", "cluster-api=v1.12.4"}, cmdline.ExitFailed,
			"from cluster-api=v1.12 (--from): ", "2 findings of level break"},
		"no Provider": {registered(t, ""), nil, cmdline.ExitDone, "not-stated",
			"The release of Cluster API that runs now is not known: there is no clusterctl Provider object for Cluster API. Name it with --from cluster-api=VERSION.\n"},
		"no ExtensionConfigs": {map[string][]any{commandtest.ListedConfigs: nil}, nil, cmdline.ExitFailed, "",
			"there is nothing to judge: the cluster has no ExtensionConfig in runtime.cluster.x-k8s.io and in runtime.hookgate.dev; is it the right cluster? If it is, give --allow-empty\n"},
		"none is all right": {map[string][]any{commandtest.ListedConfigs: nil}, []string{"--allow-empty"}, cmdline.ExitDone, "", ""},
		"none with the label": {map[string][]any{commandtest.ListedConfigs: nil}, []string{"--watch-filter", "blue", "--extension-config-group", "runtime.hookgate.dev"}, cmdline.ExitFailed, "",
			"the API server has no ExtensionConfig in runtime.hookgate.dev/v1beta2; install Cluster API or the gateway, or name another group"},
		"no such kind": {map[string][]any{}, nil, cmdline.ExitFailed, "", "the API server has no ExtensionConfig in runtime.cluster.x-k8s.io/v1beta2 and runtime.hookgate.dev/v1beta2; install Cluster API or the gateway\n"},
		"a warning fails": {withLate(registered(t, "v1.13.0")), []string{"--fail-on", "warn"}, cmdline.ExitFailed, "not-discovered",
			"hookgate: cluster-api=v1.14: 3 findings of level warn\n"},
		"undiscovered": {withLate(registered(t, "v1.13.0")), nil, cmdline.ExitFailed, "it has not been discovered",
			"hookgate: cluster-api=v1.14: 1 finding of level unknown\n"},
		"policies": {registered(t, "v1.12.4"), []string{"-o", "policies", "--watch-filter", "blue"}, cmdline.ExitFailed,
			`cluster.x-k8s.io/watch-filter: "blue"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"preflight", "--for", target, "--kubeconfig", commandtest.ApiServer(t, tt.lists)}, tt.args...)...)
			if got.Code != tt.code || !strings.Contains(got.Out, tt.out) || !strings.Contains(got.ErrOut, tt.err) {
				t.Errorf("exit status %d, want %d; want %q in\n%s\nand %q in\n%s", got.Code, tt.code, tt.out, got.Out, tt.err, got.ErrOut)
			}
		})
	}
}

// TestPreflightFindsTheCluster looks for the kubeconfig and its context as kubectl does.
func TestPreflightFindsTheCluster(t *testing.T) {
	commandtest.NoKubeconfig(t)
	old, err := os.ReadFile(commandtest.ApiServer(t, registered(t, "v1.12.4")))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(commandtest.ApiServer(t, registered(t, "v1.13.0")))
	if err != nil {
		t.Fatal(err)
	}
	server := regexp.MustCompile(`server: "[^"]*"`)
	both := commandtest.WriteFile(t, "both", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: a, cluster: {%s}}, {name: b, cluster: {%s}}]
contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: a}}]
users: [{name: a, user: {}}]
current-context: a
`, server.Find(old), server.Find(other)))
	preflight := func(args ...string) commandtest.Outcome {
		return commandtest.Hookgate(t, "", append([]string{"preflight", "--for", "cluster-api=v1.14.0"}, args...)...)
	}
	t.Setenv("KUBECONFIG", both)
	for from, args := range map[string][]string{"v1.12": nil, "v1.13": {"--context", "b"}} {
		if got := preflight(args...); !strings.Contains(got.Out, "from cluster-api="+from) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := preflight("--context", "c"); got.Code != cmdline.ExitFailed || !strings.Contains(got.ErrOut, `context "c" does not exist`) {
		t.Errorf("a context that does not exist: %+v", got)
	}
	t.Setenv("KUBECONFIG", "")
	if err := os.WriteFile(clientcmd.RecommendedHomeFile, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := preflight(); !strings.Contains(got.Out, "from cluster-api=v1.13") {
		t.Errorf("~/.kube/config: %+v", got)
	}
}

// TestPreflightLooksIntoBothGroups judges what is registered with a gateway and what is registered with Cluster API.
func TestPreflightLooksIntoBothGroups(t *testing.T) {
	lists := registered(t, "v1.12.4")
	const ofGateway = "runtime.hookgate.dev/v1beta2/extensionconfigs"
	lists[ofGateway] = lists[commandtest.ListedConfigs]
	lists[commandtest.ListedConfigs] = []any{commandtest.ExtensionConfig("core")}
	kubeconfig := commandtest.ApiServer(t, lists)
	for group, want := range map[string]string{
		"":                         "of 3 ExtensionConfigs: ",
		"runtime.cluster.x-k8s.io": "of 1 ExtensionConfig: ",
		"runtime.hookgate.dev":     "of 2 ExtensionConfigs: ",
	} {
		got := commandtest.Hookgate(t, "", "preflight", "--for", "cluster-api=v1.14.0", "--kubeconfig", kubeconfig, "--extension-config-group", group)
		if !strings.Contains(got.Out, want) {
			t.Errorf("%q: want %q in\n%s%s", group, want, got.Out, got.ErrOut)
		}
	}
}

// TestPreflightFailsFromALevelOn checks each level of --fail-on with reports whose worst finding is at that level and
// below it.
func TestPreflightFailsFromALevelOn(t *testing.T) {
	policies := commandtest.Hookgate(t, "", from112("-o", "policies")...).Out
	forAll := policies[strings.Index(policies, "---\n")+4:]
	to114 := []string{"--for", "cluster-api=v1.14.0", "--from", "cluster-api=v1.12.4"}
	for name, tt := range map[string]struct {
		more   map[string]string
		failOn string
		code   int
	}{
		"break at break":     {nil, "break", cmdline.ExitFailed},
		"break at warn":      {nil, "warn", cmdline.ExitFailed},
		"degrade at break":   {map[string]string{"p.yaml": forAll}, "break", cmdline.ExitDone},
		"degrade at degrade": {map[string]string{"p.yaml": forAll}, "degrade", cmdline.ExitFailed},
		"warn at degrade":    {map[string]string{"p.yaml": policies}, "degrade", cmdline.ExitDone},
		"warn at warn":       {map[string]string{"p.yaml": policies}, "warn", cmdline.ExitFailed},
	} {
		more := map[string]string{}
		maps.Copy(more, tt.more)
		for _, format := range []string{cmdline.FormatTable, cmdline.FormatJSON, "sarif", "policies"} {
			got := commandtest.Hookgate(t, "", append([]string{"preflight", "--extension-configs", upgraded(t, more), "--fail-on", tt.failOn, "-o", format}, to114...)...)
			if got.Code != tt.code {
				t.Errorf("%s, %s: exit status %d, want %d: %s", name, format, got.Code, tt.code, got.ErrOut)
			}
		}
	}
}

// TestPreflightOfExtensionsThatClusterAPICalls judges an extension that is registered with Cluster API, beside the group
// that the gateway reads: no policy has an effect there, and its name may be that of another.
func TestPreflightOfExtensionsThatClusterAPICalls(t *testing.T) {
	const beside = "runtime.hookgate.dev/v1beta2/extensionconfigs"
	config := func(name string) any {
		return map[string]any{"metadata": map[string]any{"name": name}, "status": map[string]any{"handlers": []any{map[string]any{
			"name":        "create." + name,
			"requestHook": map[string]any{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"},
		}}}}
	}
	policy := map[string]any{
		"metadata": map[string]any{"name": "old"},
		"spec":     map[string]any{"targetRef": map[string]any{"name": "acme"}, "clusterAPIVersion": "v1beta2"},
	}
	for name, tt := range map[string]struct {
		lists map[string][]any
		args  []string
		code  int
		out   []string
	}{
		"the gateway reads the other group": {
			map[string][]any{commandtest.ListedConfigs: {config("acme")}, beside: {config("other")}, commandtest.ListedPolicies: {policy}}, nil, cmdline.ExitFailed,
			[]string{"break   create.acme", "objects-change", "warn    acme", "policy-ignored", "Cluster API calls the extension of ExtensionConfig \"acme\" directly",
				"put a gateway before it: register it in the group that the gateway reads instead"},
		},
		"it reads this one": {
			map[string][]any{commandtest.ListedConfigs: {config("acme")}, commandtest.ListedPolicies: {policy}}, nil, cmdline.ExitDone, []string{"ok      create.acme"},
		},
		"the same name in both": {
			map[string][]any{commandtest.ListedConfigs: {config("acme")}, beside: {config("acme")}, commandtest.ListedPolicies: {policy}}, nil, cmdline.ExitFailed,
			[]string{"break   create.acme of runtime.cluster.x-k8s.io", "ok      create.acme of runtime.hookgate.dev", "2 handlers of 2 ExtensionConfigs: 1 break, 0 degrade, 0 warn, 1 ok"},
		},
		"one of them is asked about": {
			map[string][]any{commandtest.ListedConfigs: {config("acme")}, beside: {config("acme")}, commandtest.ListedPolicies: {policy}},
			[]string{"--extension-config-group", "runtime.hookgate.dev"}, cmdline.ExitDone, []string{"ok      create.acme "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"preflight", "--for", "cluster-api=v1.14.0", "--from", "cluster-api=v1.12.0", "--kubeconfig", commandtest.ApiServer(t, tt.lists)}, tt.args...)...)
			if got.Code != tt.code {
				t.Errorf("exit status %d, want %d:\n%s%s", got.Code, tt.code, got.Out, got.ErrOut)
			}
			for _, want := range tt.out {
				if !strings.Contains(got.Out, want) {
					t.Errorf("no %q in\n%s", want, got.Out)
				}
			}
		})
	}
}
