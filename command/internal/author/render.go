// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/renderflags"
)

// renderProgram renders Clusters. It is a program of its own because it contains controllers of Cluster API, which the
// gateway does not depend on.
const renderProgram = "hookgate-render"

// NewRenderCommand returns the command hookgate render.
func NewRenderCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "render [cluster/NAME] [-f FILE]...",
		Short: "Show the objects that Cluster API generates from a Cluster, with the patches of its extensions",
		Long: renderflags.Long + "\n\n" +
			"The command runs " + renderProgram + ", a program of the same release, which must be beside hookgate or in $PATH.",
		Example:            renderflags.Example,
		DisableFlagParsing: true,
		RunE:               runRender,
	}
	renderflags.Add(cmd.Flags(), renderflags.Nowhere()) // for help alone: the program reads them
	return cmd
}

// runRender runs the program with the same streams, and ends with its exit status.
func runRender(cmd *cobra.Command, args []string) error {
	path, err := findProgram(renderProgram)
	if err != nil {
		if slices.Contains(args, "-h") || slices.Contains(args, "--help") {
			return cmd.Help()
		}
		return cmdline.IncompleteError{Err: fmt.Errorf("%s is not there: %s", renderProgram, howToRender())}
	}
	program := exec.CommandContext(cmd.Context(), path, args...) //nolint:gosec // its own program, with its own arguments
	program.Stdin, program.Stdout, program.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	program.WaitDelay = 10 * time.Second
	err = program.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return cmdline.ExitError(exit.ExitCode())
	}
	return err
}

// howToRender says where the program comes from that belongs to this build.
func howToRender() string {
	version := cmdline.CurrentBuild().Version
	if !released.MatchString(version) {
		return fmt.Sprintf("this build (%s) is not a release; run make render in its source tree, and put "+
			"bin/%s beside hookgate, or in $PATH", version, renderProgram)
	}
	return fmt.Sprintf("install the file %s-%s-%s from the release of this version (%s) under the name %s, "+
		"either beside hookgate or in $PATH", renderProgram, runtime.GOOS, runtime.GOARCH, version, renderProgram)
}

// findProgram returns the path of a program that is beside this one, or in $PATH.
func findProgram(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), name)
			if strings.HasSuffix(self, ".exe") {
				beside += ".exe"
			}
			if _, err := os.Stat(beside); err == nil {
				return beside, nil
			}
		}
	}
	return exec.LookPath(name)
}
