// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/render"
)

func newDescribeCommand() *cobra.Command {
	var o statusOptions
	var output string
	cmd := &cobra.Command{
		Use:   "describe EXTENSION | rule NAME | job NAME | chain NAME",
		Short: "Show what a gateway knows of an extension, a rule, a Job or a chain",
		Long: "Show whether an extension is up, since when, and what it failed with last; its handlers with what is\n" +
			"in effect for them; what conversions lose; which Clusters wait for it; and its last ten failures.\n" +
			"Of a HookRule or a HookJob, which has no server, show the same of its handler, and whether it is in effect.\n" +
			"Of a HandlerChain, show its steps in their order, with what is in effect for each, and what keeps it\n" +
			"from being called.\n\n" +
			"The numbers are those of one gateway process, in the last five minutes.",
		Example: "  hookgate describe acme\n" +
			"  hookgate describe rule approved\n" +
			"  hookgate describe job etcd-backup\n" +
			"  hookgate describe chain platform-patches\n" +
			"  hookgate describe acme --context management\n" +
			"  hookgate describe acme --diagnostics https://hookgate.example:8443 --ca ca.crt --token-file token",
		Args: func(_ *cobra.Command, args []string) error {
			if kind, names := toDescribe(args); len(names) != 1 {
				return usagef("want the name of one %s, see \"hookgate get %ss\"; got %d names", kind, kind, len(names))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, names := toDescribe(args)
			return o.describe(cmd, kind, names[0], output)
		},
	}
	f := o.addFlags(cmd)
	f.StringVarP(&output, "output", "o", "table", "format: table, yaml or json")
	extensions, chains := completeStatus(&o, extensionNames), completeStatus(&o, chainNames)
	rules, jobs := completeStatus(&o, ruleNames), completeStatus(&o, jobNames)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 1 && slices.Contains(chainWords, args[0]) {
			return chains(cmd, nil, typed)
		}
		if len(args) == 1 && slices.Contains(ruleWords, args[0]) {
			return rules(cmd, nil, typed)
		}
		if len(args) == 1 && slices.Contains(jobWords, args[0]) {
			return jobs(cmd, nil, typed)
		}
		return extensions(cmd, args, typed)
	}
	completeFlags(cmd, map[string]completion{"output": completeFormats()})
	return cmd
}

// The kinds of what is described, and what people call them.
const (
	extensionKind = "extension"
	chainKind     = "chain"
	ruleKind      = "rule"
	jobKind       = "job"
)

var (
	extensionWords = append([]string{"extensions"}, extensionAliases...)
	chainWords     = []string{chainKind, "chains"}
	ruleWords      = []string{ruleKind, "rules"}
	jobWords       = []string{jobKind, "jobs"}
)

// toDescribe returns the kind and the names that the arguments say, which may be written as for kubectl: chain c, or
// chain/c. Without a kind, they are names of extensions.
func toDescribe(args []string) (kind string, names []string) {
	words := args
	if len(args) == 1 {
		words = strings.SplitN(args[0], "/", 2)
	}
	switch {
	case len(words) > 1 && slices.Contains(chainWords, words[0]):
		return chainKind, words[1:]
	case len(words) > 1 && slices.Contains(ruleWords, words[0]):
		return ruleKind, words[1:]
	case len(words) > 1 && slices.Contains(jobWords, words[0]):
		return jobKind, words[1:]
	case len(words) > 1 && slices.Contains(extensionWords, words[0]):
		return extensionKind, words[1:]
	}
	return extensionKind, args
}

func (o *statusOptions) describe(cmd *cobra.Command, kind, name, output string) error {
	printer, err := newPrinter(output)
	if err != nil {
		return err
	}
	return o.ask(cmd, func(c *statusClient) error {
		g, body, err := c.about(cmd.Context(), kind, name)
		if err != nil {
			return err
		}
		n, table := len(g.Extensions), render.Extension
		switch kind {
		case chainKind:
			n, table = len(g.Chains), render.Chain
		case ruleKind:
			n, table = len(g.Rules), render.Rule
		case jobKind:
			n, table = len(g.Jobs), render.Job
		}
		if n != 1 {
			return fmt.Errorf("gateway %s: the status has %d %ss, want %s alone", c.name(), n, kind, name)
		}
		s := newScreen(cmd.OutOrStdout())
		err = printer(cmd.OutOrStdout(), body, func(io.Writer) error {
			return s.write(func(w io.Writer) error { return table(w, g) })
		})
		if err != nil {
			return fmt.Errorf("print %s: %w", kind, err)
		}
		return nil
	})
}
