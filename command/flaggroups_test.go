// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestServeGroups checks that each flag of hookgate serve is in one group, and each group is in the help.
func TestServeGroups(t *testing.T) {
	serve := newServeCommand(allHooks, nil, nil)
	serve.InitDefaultHelpFlag()
	times := map[string]int{}
	for _, g := range serveGroups {
		for _, name := range g.flags {
			times[name]++
			if serve.Flags().Lookup(name) == nil {
				t.Errorf("group %q has --%s, which is no flag", g.title, name)
			}
		}
	}
	got := hookgate(t, "", "serve", "--help")
	if got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		if times[f.Name] != 1 {
			t.Errorf("--%s is in %d groups, want 1", f.Name, times[f.Name])
		}
		n := strings.Count(got.out, "\n      --"+f.Name+" ") + strings.Count(got.out, "\n      --"+f.Name+"\n")
		if n != 1 && f.Name != "help" {
			t.Errorf("help lists --%s %d times, want once", f.Name, n)
		}
	})
	for _, g := range serveGroups {
		if !strings.Contains(got.out, "\n"+g.title+":\n") {
			t.Errorf("help lacks the group %q", g.title)
		}
	}
}
