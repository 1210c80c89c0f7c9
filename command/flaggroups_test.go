// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestFlagGroups checks that each flag of the commands with groups is in one, and each group is in the help.
func TestFlagGroups(t *testing.T) {
	t.Run("serve", func(t *testing.T) { checkGroups(t, newServeCommand(commandtest.AllHooks, nil, nil), serveGroups) })
	t.Run("machines", func(t *testing.T) { checkGroups(t, newMachinesCommand(commandtest.AllHooks, nil, nil), machinesGroups) })
}

func checkGroups(t *testing.T, cmd *cobra.Command, groups []cmdline.FlagGroup) {
	t.Helper()
	cmd.InitDefaultHelpFlag()
	times := map[string]int{}
	for _, g := range groups {
		for _, name := range g.Flags {
			times[name]++
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("group %q has --%s, which is no flag", g.Title, name)
			}
		}
	}
	got := commandtest.Hookgate(t, "", cmd.Name(), "--help")
	if got.Code != cmdline.ExitDone {
		t.Fatalf("%+v", got)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if times[f.Name] != 1 {
			t.Errorf("--%s is in %d groups, want 1", f.Name, times[f.Name])
		}
		n := strings.Count(got.Out, "\n      --"+f.Name+" ") + strings.Count(got.Out, "\n      --"+f.Name+"\n")
		if n != 1 && f.Name != "help" {
			t.Errorf("help lists --%s %d times, want once", f.Name, n)
		}
	})
	for _, g := range groups {
		if !strings.Contains(got.Out, "\n"+g.Title+":\n") {
			t.Errorf("help lacks the group %q", g.Title)
		}
	}
}
