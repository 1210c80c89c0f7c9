// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
)

// mostCompletions is more than a person reads.
const mostCompletions = 1000

// CompletionTimeout is how long a shell waits for the names that a gateway knows. Only tests change it.
var CompletionTimeout = 2 * time.Second

// Completion is a completion of an argument or of the value of a flag.
type Completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// Complete returns a completion of the names that f returns. Without any, it completes nothing, in silence.
func Complete(f func(cmd *cobra.Command, args []string) []string) Completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		var found []string
		for _, name := range f(cmd, args) {
			if strings.ContainsFunc(name, special) {
				continue
			}
			if strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed)) && len(found) < mostCompletions {
				found = append(found, name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// special reports whether a shell could take a character for more than a part of a name. Servers have sent most names.
func special(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-._/@:+=", r)
}

// CompleteFlags registers completions of flags that a command has.
func CompleteFlags(cmd *cobra.Command, flags map[string]Completion) {
	for name, f := range flags {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, f) // fails only for a flag that is not there, or for a second time
		}
	}
}

// CompleteHooks completes the name of a hook, as the first argument.
func CompleteHooks(hooks *catalog.Catalog) Completion {
	return Complete(func(_ *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		var names []string
		for _, h := range hooks.Hooks() {
			names = append(names, h.Hook)
		}
		return names
	})
}

// CompleteFormats completes the formats of -o.
func CompleteFormats(more ...string) Completion {
	return Complete(func(*cobra.Command, []string) []string {
		return append([]string{FormatTable, FormatYAML, FormatJSON}, more...)
	})
}

// Briefly bounds the context of a command, and returns what ends it.
func Briefly(cmd *cobra.Command) context.CancelFunc {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	cmd.SetContext(ctx)
	return cancel
}
