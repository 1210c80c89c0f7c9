// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// hookgate render is another program, with its arguments, its output and its exit status.
func TestRenderRunsItsProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	got := commandtest.Hookgate(t, "", "render", "-f", "x")
	if got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, "hookgate-render is not there: install the file hookgate-render-") {
		t.Errorf("without the program: exit status %d: %s", got.Code, got.ErrOut)
	}
	script := "#!/bin/sh\nread line\necho \"$line, $*\"\necho why >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, renderProgram), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	got = commandtest.Hookgate(t, "in\n", "render", "cluster/c", "--diff", "live", "--help")
	if got != (commandtest.Outcome{Code: 1, Out: "in, cluster/c --diff live --help\n", ErrOut: "why\n"}) {
		t.Errorf("got %+v", got)
	}
}
