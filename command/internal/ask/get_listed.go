// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds"
)

// newGetListedCommand returns the command hookgate get for a kind of objects that the status of a gateway lists with
// the verdict on each.
func newGetListedCommand(of *kinds.Kind) *cobra.Command {
	kind := &of.Shown
	var o target.StatusOptions
	var output string
	cmd := &cobra.Command{
		Use:     kind.Plural,
		Aliases: append([]string{kind.Singular}, kubectlNames(of.Name)...),
		Short:   kind.Short,
		Long:    kind.Long,
		Example: "  hookgate get " + kind.Plural + "\n" +
			"  hookgate get " + kind.Plural + " --gateway hookgate-system --context management -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && kind.Describe != nil:
				return cmdline.Usagef("want no names, got %q; \"hookgate describe %s NAME\" shows one", args[0], kind.Singular)
			case len(args) > 0:
				return cmdline.Usagef("want no names, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return getListed(&o, cmd, of, output) },
	}
	f := o.AddFlags(cmd)
	f.StringVarP(&output, "output", "o", cmdline.FormatTable,
		"format: table, wide (with "+kind.Wide+"), name, yaml or json")
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"output": cmdline.CompleteFormats(formatWide, formatName)})
	return cmd
}

// pluralOf returns the word for several objects of a kind.
func pluralOf(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return kind + "s"
}

// kubectlNames returns what kubectl calls a kind.
func kubectlNames(kind string) []string {
	return []string{strings.ToLower(pluralOf(kind)), strings.ToLower(kind), kind}
}

func getListed(o *target.StatusOptions, cmd *cobra.Command, of *kinds.Kind, output string) error {
	kind := &of.Shown
	show, err := listPrinter(output)
	if err != nil {
		return err
	}
	return o.Ask(cmd, func(c *target.StatusClient) error {
		g, _, err := c.Get(cmd.Context(), "")
		if err != nil {
			return err
		}
		items, missed := kind.In.Items(g)
		names := kinds.Names(kind.In, g)
		if len(names) == 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no %s.\n", c.Name(), pluralOf(of.Name))
			if forPeople(output) {
				return nil
			}
			items = []any{} // an empty list in JSON, not null
		}
		if missed > 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "The list is incomplete: the gateway has %d more.\n", missed)
		}
		err = show(cmdline.NewScreen(cmd.OutOrStdout()), &list{
			body: membersOf(kind.Plural, items), names: names,
			table: func(w io.Writer, wide bool) error { return kind.Table(w, g, wide) },
		})
		if err != nil {
			return fmt.Errorf("print %s: %w", kind.Plural, err)
		}
		return nil
	})
}
