// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/text"
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
		for _, width := range []int{80, helpWidth} {
			var b strings.Builder
			groups := []flagGroup(nil)
			if cmd.Name() == "serve" {
				groups = serveGroups
			}
			b.WriteString(reflow(cmd.Long, width))
			writeUsage(&b, cmd, groups, width)
			help, examples, _ := strings.Cut(b.String(), "\nExamples:\n")
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

func TestReflow(t *testing.T) {
	const long = "One two three\nfour five.\n\nOther:\n- a list that stays\n  and its second line\nlast one."
	const want = "One two\nthree four\nfive.\n\nOther:\n- a list that stays\n  and its second line\nlast one.\n"
	if diff := cmp.Diff(want, reflow(long, 11)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
