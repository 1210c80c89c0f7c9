// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestUnknownCommands is about commands that are misspelt: the error names one that may be meant, on one line.
func TestUnknownCommands(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"gt"}, "unknown command \"gt\", did you mean \"get\"?\nRun \"hookgate --help\""},
		{[]string{"rolout", "undo"}, "unknown command \"rolout\", did you mean \"rollout\"?\nRun \"hookgate --help\""},
		{[]string{"xyzzy"}, "unknown command \"xyzzy\"\nRun \"hookgate --help\""},
		{[]string{"rollout", "aprove", "acme"}, "unknown command \"rollout aprove\", did you mean \"approve\"? Want adopt, approve, promote, pause, resume or undo\nRun \"hookgate rollout --help\""},
		{[]string{"rollout", "abort", "acme", "--context", "management"}, "say what to do: \"hookgate rollout pause\" stops further Clusters from moving, and "},
		{[]string{"rollout", "xyzzy"}, "unknown command \"rollout xyzzy\": want adopt, approve, promote, pause, resume or undo\nRun \"hookgate rollout --help\""},
		{[]string{"job", "xyzzy"}, "unknown command \"job xyzzy\": want rerun or forget\nRun \"hookgate job --help\""},
		{[]string{"rule", "rbca"}, "unknown command \"rule rbca\""},
		{[]string{"chain", "tets"}, "unknown command \"chain tets\""},
		{[]string{"version", "a"}, "want no arguments, got \"a\"\nRun \"hookgate version --help\""},
	} {
		want := "hookgate: " + tt.want
		got := commandtest.Hookgate(t, "", tt.args...)
		if got.Code != cmdline.ExitUsage || len(got.ErrOut) < len(want) || got.ErrOut[:len(want)] != want {
			t.Errorf("%q: exit status %d, got\n%swant\n%s", tt.args, got.Code, got.ErrOut, want)
		}
	}
}
