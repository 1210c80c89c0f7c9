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
		"Unreachable": {"calls", "http://127.0.0.1:1", 0, "SKIPPED: known vulnerabilities were not looked for: http://127.0.0.1:1 cannot be reached"},
		"NoDatabase":  {"keeps", "file://" + database + "/none", 1, "none"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), script, program, tt.database)
			cmd.Dir = filepath.Join("testdata", tt.module)
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
