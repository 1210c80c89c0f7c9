// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package govulncheck

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck runs the check with a database that knows one vulnerability, in strings.ToUpper.
func TestCheck(t *testing.T) {
	program := os.Getenv("HOOKGATE_GOVULNCHECK")
	if program == "" {
		t.Skip("HOOKGATE_GOVULNCHECK does not name the program: run make verify-vulnerabilities")
	}
	script, err := filepath.Abs("check")
	if err != nil {
		t.Fatal(err)
	}
	database, err := filepath.Abs(filepath.Join("testdata", "db"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		module, database string
		status           int
		want             string
	}{
		"Vulnerable":  {"calls", "file://" + database, 3, "GO-2099-0001"},
		"Good":        {"keeps", "file://" + database, 0, "No vulnerabilities found."},
		"Unreachable": {"calls", "http://127.0.0.1:1", 0, "NOT CHECKED: known vulnerabilities: http://127.0.0.1:1 cannot be reached"},
		"NoDatabase":  {"keeps", "file://" + database + "/none", 1, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), script, program, tt.database)
			cmd.Dir = t.TempDir()
			if err := os.CopyFS(cmd.Dir, os.DirFS(filepath.Join("testdata", tt.module))); err != nil {
				t.Fatal(err)
			}
			mod := "module example.com/" + tt.module + "\n\ngo 1.26.0\n"
			if err := os.WriteFile(filepath.Join(cmd.Dir, "go.mod"), []byte(mod), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := cmd.CombinedOutput()
			var ended *exec.ExitError
			if err != nil && !errors.As(err, &ended) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != tt.status || !strings.Contains(string(out), tt.want) {
				t.Errorf("exit status %d, want %d and %q in\n%s", got, tt.status, tt.want, out)
			}
		})
	}
}

// TestCIRepeatsWhatWasNotChecked runs the last command of .ci/run where the check could not run.
func TestCIRepeatsWhatWasNotChecked(t *testing.T) {
	ci, err := os.ReadFile(filepath.Join("..", "..", ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	commands := strings.Split(strings.TrimSpace(string(ci)), "\n")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	check, err := exec.CommandContext(t.Context(), "./check", "none", "http://127.0.0.1:1").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "vulnerabilities.log"), check, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands[len(commands)-1])
	cmd.Dir = dir
	out, err := cmd.Output()
	if want := "NOT CHECKED: known vulnerabilities: "; err != nil || !strings.HasPrefix(string(out), want) {
		t.Errorf("%v: .ci/run ends with %q, want %q", err, out, want)
	}
}
