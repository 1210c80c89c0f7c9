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
		Use:   "describe EXTENSION",
		Short: "Show what a gateway knows of an extension",
		Long: "Show whether an extension is up, since when, and what it failed with last; its handlers with what is\n" +
			"in effect for them; what conversions lose; which Clusters wait for it; and its last ten failures.\n\n" +
			"The numbers are those of one gateway process, in the last five minutes.",
		Example: "  hookgate describe acme\n" +
			"  hookgate describe acme --context management\n" +
			"  hookgate describe acme --diagnostics https://hookgate.example:8443 --ca ca.crt --token-file token",
		Args: func(_ *cobra.Command, args []string) error {
			if n := len(describedNames(args)); n != 1 {
				return usagef("want the name of one extension, see \"hookgate get extensions\"; got %d names", n)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.describe(cmd, describedNames(args)[0], output)
		},
	}
	f := o.addFlags(cmd)
	f.StringVarP(&output, "output", "o", "table", "format: table, yaml or json")
	cmd.ValidArgsFunction = completeStatus(&o, extensionNames)
	completeFlags(cmd, map[string]completion{"output": completeFormats()})
	return cmd
}

// describedNames returns the names of extensions among the arguments, which may also be written as for kubectl:
// extension acme, or extension/acme.
func describedNames(args []string) []string {
	kinds := append([]string{"extensions"}, extensionAliases...)
	if len(args) == 1 {
		if kind, name, ok := strings.Cut(args[0], "/"); ok && slices.Contains(kinds, kind) {
			return []string{name}
		}
	}
	if len(args) > 1 && slices.Contains(kinds, args[0]) {
		return args[1:]
	}
	return args
}

func (o *statusOptions) describe(cmd *cobra.Command, extension, output string) error {
	printer, err := newPrinter(output)
	if err != nil {
		return err
	}
	return o.ask(cmd, func(c *statusClient) error {
		g, body, err := c.get(cmd.Context(), extension)
		if err != nil {
			return err
		}
		if len(g.Extensions) != 1 {
			return fmt.Errorf("gateway %s: the status has %d extensions, want %s alone",
				c.name(), len(g.Extensions), extension)
		}
		s := newScreen(cmd.OutOrStdout())
		err = printer(cmd.OutOrStdout(), body, func(io.Writer) error {
			return s.write(func(w io.Writer) error { return render.Extension(w, g) })
		})
		if err != nil {
			return fmt.Errorf("print extension: %w", err)
		}
		return nil
	})
}
