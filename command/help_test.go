// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestHelpFits checks the help of every command at the widths of terminals. Examples are to be copied, so that they keep
// their lines, and flags may have long names.
func TestHelpFits(t *testing.T) {
	root, err := newRootCommand(func(*cobra.Command) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, width := range []int{80, 100} {
			groups := []cmdline.FlagGroup(nil)
			if cmd.Name() == "serve" {
				groups = serveGroups
			}
			help, examples, _ := strings.Cut(cmdline.HelpOf(cmd, groups, width), "\nExamples:\n")
			if _, after, ok := strings.Cut(examples, "\n\n"); ok {
				help += after
			}
			for line := range strings.Lines(help) {
				if n := text.Width(strings.TrimRight(line, " \n")); n > width {
					t.Errorf("%s, %d columns: %d in %s", cmd.CommandPath(), width, n, line)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

// A command that only has others below it has no usage of its own.
func TestUsageOfGroups(t *testing.T) {
	for _, group := range []string{"chain", "job", "rollout", "rule"} {
		got := commandtest.Hookgate(t, "", group, "--help")
		if want := "Usage:\n  hookgate " + group + " [command]\n\n"; !strings.Contains(got.Out, want) {
			t.Errorf("want %q in\n%s", want, got.Out)
		}
	}
}
