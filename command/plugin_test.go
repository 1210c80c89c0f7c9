// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

func TestIsPlugin(t *testing.T) {
	for program, want := range map[string]bool{
		"kubectl-hookgate": true, "/usr/local/bin/kubectl-hookgate": true, "kubectl-hookgate.exe": true,
		"hookgate": false, "/kubectl-hookgate/hookgate": false, "kubectl-hookgate2": false, "": false,
	} {
		if got := isPlugin(program); got != want {
			t.Errorf("%q: %t, want %t", program, got, want)
		}
	}
}

// plugin runs the program as kubectl does.
func plugin(t *testing.T, env map[string]string, args ...string) commandtest.Outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(t.Context(), "/bin/kubectl-hookgate", args, strings.NewReader(""), &out, &errOut, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	return commandtest.Outcome{Code: code, Out: out.String(), ErrOut: errOut.String()}
}

// TestPlugin checks that texts name the plug-in as one calls it, and that it means the gateway in the cluster, unless a
// flag names another one.
func TestPlugin(t *testing.T) {
	g := commandtest.NewClusterGateway(t, commandtest.AcmeManifest)
	s := commandtest.ServeStatus(t, commandtest.GatewayStatus)
	t.Setenv("KUBECONFIG", g.Kubeconfig)
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Help":        {[]string{"describe", "--help"}, cmdline.ExitDone, "kubectl hookgate describe EXTENSION"},
		"Example":     {[]string{"describe", "--help"}, cmdline.ExitDone, "  kubectl hookgate describe acme\n"},
		"Text":        {[]string{"call", "--help"}, cmdline.ExitDone, "kubectl hookgate call HOOK"},
		"Usage":       {[]string{"describe"}, cmdline.ExitUsage, `Run "kubectl hookgate describe --help" to see how to use it.`},
		"Version":     {[]string{"--version"}, cmdline.ExitDone, "kubectl hookgate "},
		"Cluster":     {[]string{"describe", "acme"}, cmdline.ExitDone, "acme"},
		"Extensions":  {[]string{"get", "extensions"}, cmdline.ExitDone, "acme"},
		"Context":     {[]string{"get", "holds", "--context", "other"}, cmdline.ExitDone, "of hookgate-system/a."},
		"Diagnostics": {[]string{"get", "extensions", "--diagnostics", s.URL}, cmdline.ExitDone, "other"},
		"Server":      {[]string{"call", "Discovery", "--server", "https://127.0.0.1:1"}, cmdline.ExitFailed, "server https://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plugin(t, nil, tt.args...)
			if got.Code != tt.code || !strings.Contains(got.Out+got.ErrOut, tt.want) {
				t.Errorf("exit status %d, want %d; want %q\n%s%s", got.Code, tt.code, tt.want, got.Out, got.ErrOut)
			}
			if strings.Contains(strings.ReplaceAll(got.Out, "kubectl hookgate ", ""), "  hookgate ") {
				t.Errorf("the help names the program otherwise:\n%s", got.Out)
			}
		})
	}
}
