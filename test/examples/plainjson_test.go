// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPlainJSON follows the page about extensions in plain JSON, word for word, as TestGuide follows the guide: only the
// ports are changed.
func TestPlainJSON(t *testing.T) {
	hookgate := gatewayPath(t)
	sections := readGuide(t, "../../docs/plain-json.md")
	program, err := os.ReadFile("../../examples/plain-json/extension.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sections {
		for _, b := range s.blocks {
			if b.language != "sh" && b.language != "text" && !strings.Contains(string(program), b.text) {
				t.Errorf("the page has a block of %s, which is neither run nor part of the program", b.language)
			}
		}
	}
	script, expected := write(sections, "", "curl --silent --cacert tls.crt https://127.0.0.1:9441")
	if len(expected) != 3 {
		t.Fatalf("the page shows %d outputs, want 3", len(expected))
	}
	https, extension := freeAddress(t), freeAddress(t)
	ports := strings.NewReplacer("9441", port(t, extension))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := t.TempDir()
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(repository, filepath.Join(dir, "hookgate")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", ports.Replace(script))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(hookgate)+":"+os.Getenv("PATH"), "HOOKGATE_HTTP_ADDRESS="+https,
		"HOOKGATE_SERVER=https://"+https, "HOOKGATE_GRPC_ADDRESS="+freeAddress(t),
		"HOOKGATE_DIAGNOSTICS_ADDRESS="+freeAddress(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // and what it left running
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, lastOutput(dir))
	}
	for block, want := range expected {
		got, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out.%d", block)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(got), strings.TrimSpace(want)) {
			t.Errorf("the page says that a block prints\n%s\nand it prints\n%s", want, got)
		}
	}
}
