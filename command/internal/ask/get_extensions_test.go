// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestGetExtensions checks what is shown of the conditions, the circuit's among them, and that no message writes to the
// terminal.
func TestGetExtensions(t *testing.T) {
	discovered := [4]string{"Discovered", "True", "Discovered", ""}
	lists := map[string][]any{commandtest.ListedConfigs: {
		commandtest.ExtensionConfig("new"),
		commandtest.ExtensionConfig("bad", discovered, [4]string{"Available", "False", "CircuitOpen", "connection refused\x1b[2J"}),
		commandtest.ExtensionConfig("good", discovered, [4]string{"Available", "True", "CircuitClosed", "not shown"}),
		commandtest.ExtensionConfig("away", [4]string{"Discovered", "False", "NotDiscovered", "no answer within 10s"}, [4]string{"Available", "Unknown", "NotDiscovered", "not discovered"}),
	}}
	got := commandtest.Hookgate(t, "", "get", "extensions", "--kubeconfig", commandtest.ApiServer(t, lists))
	var rows [][]string
	for line := range strings.Lines(got.Out) {
		rows = append(rows, strings.Fields(line))
	}
	want := [][]string{
		{"NAME", "HANDLERS", "DISCOVERED", "AVAILABLE", "MESSAGE"},
		{"away", "1", "False", "(NotDiscovered)", "Unknown", "(NotDiscovered)", "no", "answer", "within", "10s"},
		{"bad", "1", "True", "False", "(CircuitOpen)", "connection", `refused\x1b[2J`},
		{"good", "1", "True", "True", "-"},
		{"new", "1", "-", "-", "-"},
	}
	if diff := cmp.Diff(want, rows); diff != "" || got.Code != cmdline.ExitDone || got.ErrOut != "" {
		t.Errorf("exit status %d, %s; -want +got\n%s", got.Code, got.ErrOut, diff)
	}
	one := commandtest.Hookgate(t, "", "get", "extensions", "new", "--kubeconfig", commandtest.ApiServer(t, lists))
	if one.Code != cmdline.ExitDone || len(commandtest.Columns(one.Out)) != 2 || !strings.Contains(one.Out, "\nnew ") {
		t.Errorf("one of them: %+v", one)
	}
	one = commandtest.Hookgate(t, "", "get", "extensions", "nwe", "--kubeconfig", commandtest.ApiServer(t, lists))
	if one.Code != cmdline.ExitFailed || !strings.Contains(one.ErrOut, `there is no ExtensionConfig "nwe"`) {
		t.Errorf("one that is not there: %+v", one)
	}
	none := commandtest.Hookgate(t, "", "get", "extensions", "--kubeconfig", commandtest.ApiServer(t, map[string][]any{commandtest.ListedConfigs: nil}))
	if none.Code != cmdline.ExitDone || none.Out != "" || none.ErrOut != "There are no ExtensionConfigs.\n" {
		t.Errorf("without any: %+v", none)
	}
}

// TestGetExtensionsShowsNotices checks that mistakes in manifests stand below the table, and without one, too.
func TestGetExtensionsShowsNotices(t *testing.T) {
	g := commandtest.GatewayStatus()
	g.Notices = []status.Notice{{Name: "manifests", Text: "2 errors", Details: []string{"d/a.yaml:3: wrong", "d/b.yaml:7: too\x1b[2J"}}}
	server := commandtest.ServeStatus(t, func() *status.Gateway { return g })
	want := "NOTICE      MESSAGE\nmanifests   2 errors\n            d/a.yaml:3: wrong\n            d/b.yaml:7: too\\x1b[2J\n"
	got := commandtest.Hookgate(t, "", "get", "extensions", "--diagnostics", server.URL)
	if got.Code != cmdline.ExitDone || !strings.HasSuffix(got.Out, "\n\n"+want) {
		t.Errorf("got %+v, want a table and\n%s", got, want)
	}
	g.Extensions = nil
	got = commandtest.Hookgate(t, "", "get", "extensions", "--diagnostics", server.URL)
	if got.Code != cmdline.ExitDone || got.Out != "" || !strings.HasSuffix(got.ErrOut, " has no extensions.\n\n"+want) {
		t.Errorf("without extensions: got %+v, want\n%s", got, want)
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
		"NoKind":  {[]string{"--kubeconfig", commandtest.ApiServer(t, nil)}, cmdline.ExitFailed, "the API server has no ExtensionConfig in runtime.cluster.x-k8s.io/v1beta2; install Cluster API or the gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			got := commandtest.Hookgate(t, "", append([]string{"get", "extensions"}, tt.args...)...)
			if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) {
				t.Errorf("exit status %d, want %d; %s\nwant %s", got.Code, tt.code, got.ErrOut, tt.want)
			}
		})
	}
}
