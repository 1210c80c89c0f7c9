// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookgate/hookgate/internal/base/text"
)

// helpWidth is the width of help where no terminal is narrower: longer lines are hard to read.
const helpWidth = 100

// WrapHelp makes a command, and those below it, write help that fits the terminal, with the flags in groups if there
// are any.
func WrapHelp(of *cobra.Command, groups []FlagGroup) {
	of.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		_, _ = io.WriteString(out, HelpOf(cmd, groups, widthFor(out))) // a reader who has left wants no help
	})
	of.SetUsageFunc(func(cmd *cobra.Command) error {
		var b strings.Builder
		writeUsage(&b, cmd, groups, widthFor(cmd.OutOrStderr()))
		_, err := io.WriteString(cmd.OutOrStderr(), b.String())
		return err
	})
}

// HelpOf returns the help of a command in lines of a width.
func HelpOf(cmd *cobra.Command, groups []FlagGroup, width int) string {
	var b strings.Builder
	b.WriteString(reflow(cmp.Or(cmd.Long, cmd.Short), width) + "\n")
	if cmd.Runnable() || cmd.HasSubCommands() {
		writeUsage(&b, cmd, groups, width)
	}
	return b.String()
}

func widthFor(out io.Writer) int {
	if width := NewScreen(out).width(); width > 0 {
		return min(width, helpWidth)
	}
	return helpWidth
}

// reflow returns a text in lines of a width. It joins lines, but those that begin with a space or a dash, and empty
// ones, stay apart.
func reflow(s string, width int) string {
	var b strings.Builder
	paragraph := ""
	flush := func() {
		if paragraph != "" {
			b.WriteString(strings.Join(text.Fold(paragraph, width), "\n") + "\n")
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(strings.TrimSpace(s), "\n") {
		if line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "- ") {
			flush()
			b.WriteString(line + "\n")
			continue
		}
		paragraph = strings.TrimPrefix(paragraph+" "+line, " ")
	}
	flush()
	return b.String()
}

// hanging writes a text in lines of a width. All but the first are indented, which begins with start.
func hanging(b *strings.Builder, start, s string, indent, width int) {
	for i, line := range text.Fold(s, width-indent) {
		if i > 0 {
			start = strings.Repeat(" ", indent)
		}
		b.WriteString(start + line + "\n")
	}
}

// writeUsage writes how a command is used: what cobra writes, with the flags in groups if there are any.
func writeUsage(b *strings.Builder, cmd *cobra.Command, groups []FlagGroup, width int) {
	b.WriteString("Usage:\n")
	if cmd.Runnable() && (!cmd.HasAvailableSubCommands() || cmd.UseLine() != cmd.CommandPath()) {
		hanging(b, "  ", cmd.UseLine(), 4, width)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.CommandPath() + " [command]\n")
	}
	if len(cmd.Aliases) > 0 {
		b.WriteString("\nAliases:\n  " + cmd.NameAndAliases() + "\n")
	}
	if cmd.HasExample() {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nAvailable Commands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				start := fmt.Sprintf("  %-*s ", sub.NamePadding(), sub.Name())
				hanging(b, start, sub.Short, len(start), width)
			}
		}
	}
	for _, g := range flagsOf(cmd, groups) {
		b.WriteString("\n" + g.title + ":\n")
		g.flags.VisitAll(func(f *pflag.Flag) { writeFlag(b, f, width) })
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
}

// writeFlag writes a flag as pflag does, but texts of all flags begin in the same column, which leaves most of a line
// to them. One with a long name begins below it.
func writeFlag(b *strings.Builder, f *pflag.Flag, width int) {
	if f.Hidden {
		return
	}
	name, usage := pflag.UnquoteUsage(f)
	start := "      --" + f.Name
	if f.Shorthand != "" {
		start = "  -" + f.Shorthand + ", --" + f.Name
	}
	if name != "" {
		start += " " + name
	}
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		value := f.DefValue
		if f.Value.Type() == "string" {
			value = strconv.Quote(value)
		}
		usage += " (default " + value + ")"
	}
	indent := width/3 + 2
	if len(start)+2 > indent {
		b.WriteString(start + "\n")
		start = ""
	}
	hanging(b, fmt.Sprintf("%-*s", indent, start), usage, indent, width)
}

// titledFlags are flags under a title.
type titledFlags struct {
	title string
	flags *pflag.FlagSet
}

// flagsOf returns the flags of a command, in groups if there are any.
func flagsOf(cmd *cobra.Command, groups []FlagGroup) []titledFlags {
	var all []titledFlags
	if groups == nil {
		all = []titledFlags{{"Flags", cmd.LocalFlags()}, {"Global Flags", cmd.InheritedFlags()}}
	}
	for _, g := range groups {
		some := pflag.NewFlagSet(g.Title, pflag.ContinueOnError)
		some.SortFlags = false
		for _, name := range g.Flags {
			if f := cmd.Flags().Lookup(name); f != nil {
				some.AddFlag(f)
			}
		}
		all = append(all, titledFlags{g.Title, some})
	}
	return slices.DeleteFunc(all, func(of titledFlags) bool { return !of.flags.HasAvailableFlags() })
}

// FlagGroup is flags about one topic, in the order in which help shows them.
type FlagGroup struct {
	Title string
	Flags []string
}

// GroupFlags makes help show the flags of a command in groups.
func GroupFlags(cmd *cobra.Command, groups []FlagGroup) { WrapHelp(cmd, groups) }
