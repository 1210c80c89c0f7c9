// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPluginOfKubectl runs hookgate as kubectl does under the name kubectl-hookgate.
func TestPluginOfKubectl(t *testing.T) {
	k := newKubectl(t)
	program := os.Getenv(gatewayVariable)
	if program == "" {
		t.Skipf("%s is not set", gatewayVariable)
	}
	folder := t.TempDir()
	if err := os.Symlink(program, filepath.Join(folder, "kubectl-hookgate")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"Listed":   {[]string{"plugin", "list"}, 0, filepath.Join(folder, "kubectl-hookgate")},
		"Version":  {[]string{"hookgate", "--version"}, 0, "kubectl hookgate "},
		"Help":     {[]string{"hookgate", "get", "--help"}, 0, "kubectl hookgate get [command]"},
		"Usage":    {[]string{"hookgate", "describe"}, 2, `Run "kubectl hookgate describe --help" for help.`},
		"Complete": {[]string{"hookgate", "__complete", "call", "GeneratePa"}, 0, "GeneratePatches"},
		"Cluster":  {[]string{"hookgate", "get", "extensions"}, 1, "namespace hookgate-system has no gateway Pod"},
		"Other":    {[]string{"hookgate", "get", "holds", "--gateway", "elsewhere"}, 1, "namespace elsewhere has no gateway Pod"},
	} {
		t.Run(name, func(t *testing.T) {
			c := exec.CommandContext(t.Context(), k.program, tt.args...)
			c.Env = append(os.Environ(), "KUBECONFIG="+k.config, "HOME="+folder, "PATH="+folder+":"+os.Getenv("PATH"))
			out, _ := c.CombinedOutput()
			if code := c.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.want) {
				t.Errorf("exit status %d, want %d; want %q\n%s", code, tt.code, tt.want, out)
			}
		})
	}
}
