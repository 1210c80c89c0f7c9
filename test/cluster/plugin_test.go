// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// TestPlugin runs the plug-in of kubectl with nothing but a kubeconfig.
func TestPlugin(t *testing.T) {
	hub(t)
	for command, want := range map[string]string{"get extensions": "acme", "get holds": ""} {
		if out, err := plugin(t, command); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}

// TestPluginCommands runs all commands that ask a gateway and change nothing.
func TestPluginCommands(t *testing.T) {
	all(t)
	applyFile(t, "jobs.yaml")
	answers(t, "BeforeClusterUpgrade", "upgrade.yaml", "backed up")
	report := filepath.Join(t.TempDir(), "report.zip")
	for command, want := range map[string]string{
		"get extensions":                      "acme",
		"get extensions --context test":       "acme",
		"get handlers":                        "approval.acme",
		"get rules":                           "",
		"get jobs":                            "backup",
		"get chains":                          "",
		"get policies":                        "",
		"get rollouts":                        "",
		"get holds -o json":                   "[",
		"describe acme":                       "approval",
		"describe job backup":                 "BeforeClusterUpgrade",
		"preflight --for cluster-api=v1.14.0": "acme",
		"bug-report -f " + report:             "",
		"get extensions --gateway absent":     "namespace absent has no Pod of a gateway",
	} {
		out, err := plugin(t, command)
		if fails := strings.Contains(command, "--gateway absent"); (err != nil) != fails || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q\n%s", command, err, want, out)
		}
	}
}

func plugin(t *testing.T, command string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Symlink(process.Program(t, "HOOKGATE_BIN"), filepath.Join(dir, "kubectl-hookgate")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(assets(), "kubectl"), strings.Fields("hookgate "+command)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+node.kubeconfig, "HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}
