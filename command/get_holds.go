// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/render"
	"github.com/hookgate/hookgate/internal/status"
)

func newGetHoldsCommand() *cobra.Command {
	var o statusOptions
	var output, namespace string
	cmd := &cobra.Command{
		Use:   "holds [CLUSTER]",
		Short: "List the Clusters that wait for a handler, and why",
		Long: "List the Clusters that cannot go on because a handler of a hook says so, with retryAfterSeconds or with\n" +
			"status Failure, or because it does not answer. One gateway process knows the calls that it has made.",
		Example: "  hookgate get holds\n  hookgate get holds --namespace team-a my-cluster",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("want the name of one Cluster at most, got %d names", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return o.holds(cmd, namespace, name, output)
		},
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVarP(&namespace, "namespace", "n", "", "list only Clusters of this namespace")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	f.StringVarP(&output, "output", "o", formatTable, "format: table, yaml or json")
	return cmd
}

func (o *statusOptions) holds(cmd *cobra.Command, namespace, name, output string) error {
	printer, err := newPrinter(output)
	if err != nil {
		return err
	}
	c, err := o.open()
	if err != nil {
		return err
	}
	defer c.close()
	g, _, err := c.get(cmd.Context(), "")
	if err != nil {
		return err
	}
	kept := []status.Hold{}
	for _, h := range g.Holds {
		if (namespace == "" || h.Namespace == namespace) && (name == "" || h.Cluster == name) {
			kept = append(kept, h)
		}
	}
	if g.Holds = kept; len(kept) == 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "No Cluster waits for a handler of %s.\n", c.name())
		if output == formatTable {
			return nil
		}
	}
	if g.MissedHolds > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "There may be more: the gateway had no room for %d holds.\n", g.MissedHolds)
	}
	body, err := json.Marshal(kept)
	if err == nil {
		err = printer(cmd.OutOrStdout(), body, func(w io.Writer) error { return render.Holds(w, g) })
	}
	if err != nil {
		return fmt.Errorf("print holds: %w", err)
	}
	return nil
}
