// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  hookgate version\n  hookgate version -o json",
		Args:    cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout(), cmdline.CurrentBuild(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "format: text or json")
	return cmd
}

func printVersion(w io.Writer, b cmdline.BuildInfo, output string) error {
	switch output {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(b)
	case "text":
		from := b.Commit
		if b.Modified {
			from += " and changes"
		}
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		_, _ = fmt.Fprintf(t, "hookgate\t%s\ncommit\t%s\nbuilt with\t%s for %s\nhooks\t%s\n", b.Version, from, b.Go,
			b.Platform, b.HooksAPI)
		return t.Flush()
	default:
		return cmdline.Usagef("--output %q: want text or json", output)
	}
}
