// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
)

// NewDescribeCommand returns the command hookgate describe.
func NewDescribeCommand() *cobra.Command {
	var o target.StatusOptions
	var output string
	cmd := &cobra.Command{
		Use:   "describe EXTENSION | rollout NAME | rule NAME | job NAME | chain NAME",
		Short: "Show what a gateway knows about an extension, a rollout, a rule, a Job or a chain",
		Long: "Show whether an extension is up, since when, and its last error; its handlers with the settings in\n" +
			"effect; what conversions lose; which Clusters wait for the extension; and its last ten failures.\n" +
			"For an ExtensionRollout, show the Clusters that have moved, or for which the two versions answer\n" +
			"differently. For each Cluster, show the differences, the values of both versions, and the effects on Machines.\n" +
			"For a HookRule or a HookJob, which has no server, show whether the object is in effect, and describe\n" +
			"its handler like a handler of an extension. For a HandlerChain, show its steps in order,\n" +
			"with the settings in effect, and what keeps the chain from being called.\n\n" +
			"The numbers come from one gateway process, and cover the last five minutes.",
		Example: "  hookgate describe acme\n" +
			"  hookgate describe rollout acme\n" +
			"  hookgate describe rule approved\n" +
			"  hookgate describe job etcd-backup\n" +
			"  hookgate describe chain platform-patches\n" +
			"  hookgate describe acme --context management\n" +
			"  hookgate describe acme --diagnostics https://hookgate.example:8443 --ca ca.crt --token-file token",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.Usagef("say what to describe: %s", describedText)
			}
			if _, known := describableOf(args[0]); len(args) == 2 && !known {
				return cmdline.Usagef("cannot describe %q: want %s", args[0], describedText)
			}
			if what, names := toDescribe(args); len(names) != 1 {
				return cmdline.Usagef("want the name of one %s, see \"hookgate get %ss\"; got %d "+
					"names", what.kind, what.kind, len(names))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			what, names := toDescribe(args)
			return describe(&o, cmd, what, names[0], output)
		},
	}
	f := o.AddFlags(cmd)
	f.StringVarP(&output, "output", "o", cmdline.FormatTable, "format: table, wide (with all columns), yaml or json")
	completions := map[string]cmdline.Completion{}
	for _, d := range describables() {
		completions[d.kind] = target.CompleteStatus(&o, d.names)
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 {
			if d, ok := describableOf(args[0]); ok && d.kind != extensionKind {
				return completions[d.kind](cmd, nil, typed)
			}
		}
		return completions[extensionKind](cmd, args, typed)
	}
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"output": cmdline.CompleteFormats(formatWide)})
	return cmd
}

// describable is a kind of what is described.
type describable struct {
	kind  string
	words []string // what people call it
	names func(g *status.Gateway) []string
	table func(w io.Writer, g *status.Gateway) error
}

const extensionKind = "extension"

const describedText = "the name of an extension, or rollout, rule, job or chain and a name"

func describables() []describable {
	all := []describable{{
		extensionKind, append([]string{"extensions"}, extensionAliases...), extensionNames, printers.Extension,
	}}
	for _, k := range allkinds.Own() {
		if of := k.Shown; of.Describe != nil {
			all = append(all, describable{
				of.Singular, append([]string{of.Singular, of.Plural}, kubectlNames(k.Name)...),
				func(g *status.Gateway) []string { return kinds.Names(of.In, g) }, of.Describe,
			})
		}
	}
	return all
}

// describableOf returns the kind that people call so.
func describableOf(word string) (describable, bool) {
	all := describables()
	i := slices.IndexFunc(all, func(d describable) bool { return slices.Contains(d.words, word) })
	if i < 0 {
		return describable{}, false
	}
	return all[i], true
}

// toDescribe returns the kind and the names that the arguments say, which may be written as for kubectl: chain c, or
// chain/c. Without a kind, they are names of extensions.
func toDescribe(args []string) (what describable, names []string) {
	words := args
	if len(args) == 1 {
		words = strings.SplitN(args[0], "/", 2)
	}
	if len(words) > 1 {
		if d, ok := describableOf(words[0]); ok {
			return d, words[1:]
		}
	}
	what, _ = describableOf(extensionKind)
	return what, args
}

func describe(o *target.StatusOptions, cmd *cobra.Command, what describable, name, output string) error {
	show, err := listPrinter(output)
	if err != nil || output == formatName {
		return cmdline.Usagef("--output %q: want table, wide, yaml or json", output)
	}
	return o.Ask(cmd, func(c *target.StatusClient) error {
		g, body, err := c.About(cmd.Context(), what.kind, name)
		if err != nil {
			return err
		}
		if n := len(what.names(g)); n != 1 {
			return fmt.Errorf("gateway %s: the status has %d %ss, but should have only %s", c.Name(), n, what.kind, name)
		}
		err = show(cmdline.NewScreen(cmd.OutOrStdout()), &list{
			body:  func() ([]byte, error) { return body, nil },
			table: func(w io.Writer, _ bool) error { return what.table(w, g) },
		})
		if err != nil {
			return fmt.Errorf("print %s: %w", what.kind, err)
		}
		return nil
	})
}
