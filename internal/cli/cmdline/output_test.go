// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestProgram checks that commands to copy run in other directories, too.
func TestProgram(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{
		"hookgate":       "hookgate",
		"bin/hookgate":   filepath.Join(here, "bin/hookgate"),
		"../my hookgate": "'" + filepath.Join(filepath.Dir(here), "my hookgate") + "'",
		"/bin/hookgate":  "/bin/hookgate",
		"":               "root",
	} {
		cmd := &cobra.Command{Use: "root", Annotations: map[string]string{cmdline.ProgramAnnotation: program}}
		if got := cmdline.Program(cmd); got != want {
			t.Errorf("%q: commands begin with %s, want %s", program, got, want)
		}
	}
}
