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
	dir := t.TempDir()
	if err := os.Symlink(process.Program(t, "HOOKGATE_BIN"), filepath.Join(dir, "kubectl-hookgate")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"get extensions": "acme", "get holds": ""} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(os.Getenv(assetsVariable), "kubectl"), strings.Fields("hookgate "+command)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+node.kubeconfig, "HOME="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
}
