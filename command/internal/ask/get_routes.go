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
)

func newGetRoutesCommand() *cobra.Command {
	var o target.StatusOptions
	var output string
	cmd := &cobra.Command{
		Use:     "routes NAMESPACE/CLUSTER",
		Aliases: []string{"route"},
		Short:   "List which handlers answer which hook for a Cluster, and in which order",
		Long: "List the handlers that are called for the hooks of a Cluster, according to the labels of the\n" +
			"Cluster's namespace. For one hook, handlers with the same TURN are called at the same time; the\n" +
			"next turn begins once they have answered. TURN 2.1 is the first step of the chain that has\n" +
			"turn 2. A handler that has no TURN is called only if the caller names it, as a ClusterClass does, or\n" +
			"if its hook has no other handler.\n\n" +
			"(conditional) means that a policy or a rule decides for each request whether the handler is\n" +
			"called: \"hookgate explain\" shows the decision for one request. A gateway process knows only\n" +
			"Clusters about which it has made calls itself, unless it watches Clusters for an\n" +
			"ExtensionRollout or for a chain of an in-place hook.",
		Example: "  hookgate get routes team-a/prod\n" +
			"  hookgate get routes team-a/prod --gateway hookgate-system --context management -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdline.Usagef("want one NAMESPACE/CLUSTER, got %d arguments", len(args))
			}
			namespace, name, _ := strings.Cut(args[0], "/")
			if namespace == "" || name == "" || strings.Contains(name, "/") {
				return cmdline.Usagef("want NAMESPACE/CLUSTER, such as default/my-cluster, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return getRoutes(&o, cmd, args[0], output) },
	}
	f := o.AddFlags(cmd)
	f.StringVarP(&output, "output", "o", cmdline.FormatTable,
		"format: table, wide (with more columns), name (of each handler), yaml or json")
	cmd.ValidArgsFunction = target.CompleteStatus(&o, waitingClusters)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"output": cmdline.CompleteFormats(formatWide, formatName)})
	return cmd
}

// waitingClusters returns the Clusters that wait for a handler, with their namespaces.
func waitingClusters(g *status.Gateway) []string {
	var names []string
	for i := range g.Holds {
		names = append(names, g.Holds[i].Namespace+"/"+g.Holds[i].Cluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func getRoutes(o *target.StatusOptions, cmd *cobra.Command, cluster, output string) error {
	show, err := listPrinter(output)
	if err != nil {
		return err
	}
	return o.Ask(cmd, func(c *target.StatusClient) error {
		found, body, err := c.Cluster(cmd.Context(), cluster)
		if err != nil {
			return err
		}
		if len(found.Hooks) == 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no handlers for %s.\n", c.Name(), cluster)
			if forPeople(output) {
				return nil
			}
		}
		err = show(cmdline.NewScreen(cmd.OutOrStdout()), &list{
			body: func() ([]byte, error) { return body, nil }, names: printers.RouteNames(found),
			table: func(w io.Writer, wide bool) error { return printers.Routes(w, found, wide) },
		})
		if err != nil {
			return fmt.Errorf("print routes: %w", err)
		}
		return nil
	})
}
