// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/author"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// hookgate render is another program, with its arguments, its output and its exit status.
func TestRenderRunsItsProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	got := commandtest.Hookgate(t, "", "render", "-f", "x")
	if got.Code != cmdline.ExitUsage || !strings.Contains(got.ErrOut, "hookgate-render is not there: this build (") ||
		!strings.Contains(got.ErrOut, "run make render in its source tree") {
		t.Errorf("without the program: exit status %d: %s", got.Code, got.ErrOut)
	}
	got = commandtest.Hookgate(t, "", "render", "cluster/c", "--help")
	for _, want := range []string{"--against-extension-configs", "-f, --filename", "--diff live", "hookgate render -f cluster.yaml"} {
		if got.Code != cmdline.ExitDone || !strings.Contains(got.Out, want) {
			t.Errorf("help without the program: exit status %d, no %q in\n%s", got.Code, want, got.Out)
		}
	}
	script := "#!/bin/sh\nread line\necho \"$line, $*\"\necho why >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, author.RenderProgram), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	got = commandtest.Hookgate(t, "in\n", "render", "cluster/c", "--diff", "live", "--help")
	if got != (commandtest.Outcome{Code: 1, Out: "in, cluster/c --diff live --help\n", ErrOut: "why\n"}) {
		t.Errorf("got %+v", got)
	}
}
