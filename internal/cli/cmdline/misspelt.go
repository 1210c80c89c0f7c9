// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/base/text"
)

// Choose returns what a command runs that only has others below it, which the error names. what says what they do, such
// as "do with rollouts".
func Choose(what, choices string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef("say what to %s: %s", what, choices)
		}
		word := cmd.Name() + " " + args[0]
		if question := commandMeant(cmd, args[0]); question != "" {
			return Usagef("unknown command %q%s Want %s", word, question, choices)
		}
		return Usagef("unknown command %q: want %s", word, choices)
	}
}

// NoArgs refuses arguments.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("want no arguments, got %q", args[0])
	}
	return nil
}

// FlagError returns the error of flags that cannot be parsed.
func FlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if nearest := text.Nearest(unknown.GetSpecifiedName(), names); nearest != "" {
			err = fmt.Errorf("%w, did you mean --%s?", err, nearest)
		}
	}
	return UsageError{err}
}

// UnknownCommand returns cobra's error for an unknown command in the form of all others, and any other error as it is.
func UnknownCommand(root *cobra.Command, err error) error {
	var word string
	if n, _ := fmt.Sscanf(err.Error(), "unknown command %q for", &word); n == 0 {
		return err
	}
	return Usagef("unknown command %q%s", word, commandMeant(root, word))
}

// commandMeant returns the question whether the nearest command below one was meant, empty if none is near.
func commandMeant(of *cobra.Command, typed string) string {
	var names []string
	for _, cmd := range of.Commands() {
		names = append(names, cmd.Name())
	}
	for _, cmd := range of.Commands() { // after all names: of two that are equally near, the first one is meant
		names = append(names, cmd.Aliases...)
	}
	nearest := text.Nearest(typed, names)
	if nearest == "" { // the word is short, or the beginning of one
		of.SuggestionsMinimumDistance = 1
		if all := of.SuggestionsFor(typed); len(all) == 1 {
			nearest = all[0]
		}
	}
	if nearest == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", nearest)
}
