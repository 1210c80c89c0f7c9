// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// extensionConfig returns an ExtensionConfig with a handler and conditions, each a type, a status, a reason and a
// message.
func extensionConfig(name string, conditions ...[4]string) map[string]any {
	list := []any{}
	for _, c := range conditions {
		list = append(list, map[string]any{
			"type": c[0], "status": c[1], "reason": c[2], "message": c[3], "lastTransitionTime": "2026-01-01T00:00:00Z",
		})
	}
	return map[string]any{
		"kind": "ExtensionConfig", "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": list, "handlers": []any{map[string]any{
			"name": "v." + name, "requestHook": map[string]any{"apiVersion": "a/b", "hook": "C"},
		}}},
	}
}

// TestGetExtensions checks what is shown of the conditions, the circuit's among them, and that no message writes to the
// terminal.
func TestGetExtensions(t *testing.T) {
	discovered := [4]string{"Discovered", "True", "Discovered", ""}
	lists := map[string][]any{listedConfigs: {
		extensionConfig("new"),
		extensionConfig("bad", discovered, [4]string{"Available", "False", "CircuitOpen", "connection refused\x1b[2J"}),
		extensionConfig("good", discovered, [4]string{"Available", "True", "CircuitClosed", "not shown"}),
		extensionConfig("away", [4]string{"Discovered", "False", "NotDiscovered", "no answer within 10s"}, [4]string{"Available", "Unknown", "NotDiscovered", "not discovered"}),
	}}
	got := hookgate(t, "", "get", "extensions", "--kubeconfig", apiServer(t, lists))
	var rows [][]string
	for line := range strings.Lines(got.out) {
		rows = append(rows, strings.Fields(line))
	}
	want := [][]string{
		{"EXTENSION", "HANDLERS", "DISCOVERED", "AVAILABLE", "MESSAGE"},
		{"away", "1", "False", "(NotDiscovered)", "Unknown", "(NotDiscovered)", "no", "answer", "within", "10s"},
		{"bad", "1", "True", "False", "(CircuitOpen)", "connection", `refused\x1b[2J`},
		{"good", "1", "True", "True", "-"},
		{"new", "1", "-", "-", "-"},
	}
	if diff := cmp.Diff(want, rows); diff != "" || got.code != cmdline.ExitDone || got.errOut != "" {
		t.Errorf("exit status %d, %s; -want +got\n%s", got.code, got.errOut, diff)
	}
	one := hookgate(t, "", "get", "extensions", "new", "--kubeconfig", apiServer(t, lists))
	if one.code != cmdline.ExitDone || len(columns(one.out)) != 2 || !strings.Contains(one.out, "\nnew ") {
		t.Errorf("one of them: %+v", one)
	}
	one = hookgate(t, "", "get", "extensions", "nwe", "--kubeconfig", apiServer(t, lists))
	if one.code != cmdline.ExitFailed || !strings.Contains(one.errOut, `there is no ExtensionConfig "nwe"`) {
		t.Errorf("one that is not there: %+v", one)
	}
	none := hookgate(t, "", "get", "extensions", "--kubeconfig", apiServer(t, map[string][]any{listedConfigs: nil}))
	if none.code != cmdline.ExitDone || none.out != "" || none.errOut != "There are no ExtensionConfigs.\n" {
		t.Errorf("without any: %+v", none)
	}
}

func TestGetExtensionsFails(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Group":   {[]string{"--kubeconfig", "x", "--extension-config-group", "y"}, cmdline.ExitUsage, `--extension-config-group: want runtime.cluster.x-k8s.io or runtime.hookgate.dev, got "y"`},
		"Timeout": {[]string{"--kubeconfig", "x", "--timeout", "0s"}, cmdline.ExitUsage, "--timeout: want more than 0, got 0s"},
		"NoFile":  {[]string{"--kubeconfig", "none"}, cmdline.ExitFailed, "kubeconfig: "},
		"NoKind":  {[]string{"--kubeconfig", apiServer(t, nil)}, cmdline.ExitFailed, "the API server has no ExtensionConfig in runtime.cluster.x-k8s.io/v1beta2; install Cluster API or the gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			got := hookgate(t, "", append([]string{"get", "extensions"}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.errOut, tt.want) {
				t.Errorf("exit status %d, want %d; %s\nwant %s", got.code, tt.code, got.errOut, tt.want)
			}
		})
	}
}
