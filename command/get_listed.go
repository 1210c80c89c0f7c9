// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/kinds"
)

// newGetListedCommand returns the command hookgate get for a kind of objects that the status of a gateway lists with
// the verdict on each.
func newGetListedCommand(kind *kinds.Shown) *cobra.Command {
	var o statusOptions
	var output string
	cmd := &cobra.Command{
		Use:     kind.Plural,
		Aliases: []string{kind.Singular},
		Short:   kind.Short,
		Long:    kind.Long,
		Example: "  hookgate get " + kind.Plural + "\n" +
			"  hookgate get " + kind.Plural + " --gateway hookgate-system --context management -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("want no names, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.getListed(cmd, kind, output) },
	}
	f := o.addFlags(cmd)
	f.StringVarP(&output, "output", "o", formatTable, "format: table, wide, with "+kind.Wide+", name, yaml or json")
	completeFlags(cmd, map[string]completion{"output": completeFormats(formatWide, formatName)})
	return cmd
}

func (o *statusOptions) getListed(cmd *cobra.Command, kind *kinds.Shown, output string) error {
	show, err := listPrinter(output)
	if err != nil {
		return err
	}
	return o.ask(cmd, func(c *statusClient) error {
		g, _, err := c.get(cmd.Context(), "")
		if err != nil {
			return err
		}
		items, missed := kind.In.Items(g)
		names := kinds.Names(kind.In, g)
		if len(names) == 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no %s.\n", c.name(), kind.Plural)
			if forPeople(output) {
				return nil
			}
			items = []any{} // an empty list in JSON, not null
		}
		if missed > 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "There are %d more, which the gateway does not list.\n", missed)
		}
		err = show(newScreen(cmd.OutOrStdout()), &list{
			body: membersOf(kind.Plural, items), names: names,
			table: func(w io.Writer, wide bool) error { return kind.Table(w, g, wide) },
		})
		if err != nil {
			return fmt.Errorf("print %s: %w", kind.Plural, err)
		}
		return nil
	})
}
