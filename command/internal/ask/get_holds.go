// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// holdsOptions are the flags of hookgate get holds, and the name of the Cluster.
type holdsOptions struct {
	target.StatusOptions
	namespace string
	cluster   string
	output    string
}

func newGetHoldsCommand() *cobra.Command {
	var o holdsOptions
	cmd := &cobra.Command{
		Use:     "holds [[NAMESPACE/]CLUSTER]",
		Aliases: []string{"hold"},
		Short:   "List the Clusters that wait for a handler, and why",
		Long: "List the Clusters that cannot go on because a handler holds them with retryAfterSeconds,\n" +
			"answers Failure, or does not answer. A gateway process knows only the calls that it made\n" +
			"itself. If the command connects through the API server, it queries all replicas, and shows the\n" +
			"last answer about each Cluster.\n\n" +
			"If a HookRule limits concurrency, a second table lists the Clusters that occupy the rule's places.\n" +
			"\"hookgate get rules -o json\" shows these Clusters, too.",
		Example: "  hookgate get holds\n  hookgate get holds team-a/my-cluster",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cmdline.Usagef("want the name of one Cluster at most, got %d names", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := o.parse(args[0]); err != nil {
					return err
				}
			}
			return o.run(cmd)
		},
	}
	f := o.AddFlags(cmd)
	f.StringVarP(&o.namespace, "namespace", "n", "", "list only Clusters of this namespace")
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable,
		"format: table, wide, name (of the Cluster), yaml or json")
	cmd.ValidArgsFunction = target.CompleteStatus(&o.StatusOptions, clusterNames)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"output": cmdline.CompleteFormats(formatWide, formatName)})
	return cmd
}

// parse reads the argument.
func (o *holdsOptions) parse(cluster string) error {
	namespace, name, ok := strings.Cut(cluster, "/")
	if !ok {
		o.cluster = cluster
		return nil
	}
	if o.namespace != "" && o.namespace != namespace {
		return cmdline.Usagef("--namespace: %q is not the namespace of %q", text.Cut(o.namespace, limits.QuotedBytes),
			text.Cut(cluster, limits.QuotedBytes))
	}
	o.namespace, o.cluster = namespace, name
	return nil
}

func (o *holdsOptions) run(cmd *cobra.Command) error {
	show, err := listPrinter(o.output)
	if err != nil {
		return err
	}
	var replicas []*status.Gateway
	var names []string
	err = o.AskAll(cmd, func(c *target.StatusClient) error {
		g, err := c.Released(cmd.Context())
		if err == nil {
			replicas, names = append(replicas, g), append(names, c.Name())
		}
		return err
	})
	if err != nil {
		return err
	}
	g := replicas[0] // all read the places from the same objects
	g.Holds, g.MissedHolds = status.HoldsOf(replicas)
	return o.print(cmd, show, g, strings.Join(names, ", "))
}

func (o *holdsOptions) print(
	cmd *cobra.Command, show func(*cmdline.Screen, *list) error, g *status.Gateway, gateway string,
) error {
	held := len(g.Holds)
	g.Holds = slices.DeleteFunc(g.Holds, func(h status.Hold) bool { return !o.means(h.Namespace, h.Cluster) })
	for i := range g.Rules {
		r := &g.Rules[i]
		if r.MissedPlaces > 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "The list is incomplete: the gateway had no room for %d more places of "+
				"HookRule %s.\n", r.MissedPlaces, r.Name)
		}
		r.Places = slices.DeleteFunc(r.Places, func(p status.Place) bool { return !o.means(p.Namespace, p.Cluster) })
	}
	if len(g.Holds) == 0 {
		which := "No Cluster waits"
		if held > 0 {
			which = "No Cluster of that name or namespace waits"
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s for a handler of %s.\n", which, gateway)
		g.Holds = []status.Hold{} // an empty list in JSON, not null
	} else if g.MissedHolds > 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "The list may be incomplete: the gateway had no room for %d holds.\n",
			g.MissedHolds)
	}
	l := &list{
		body:  membersOf("holds", g.Holds),
		names: waitingClusters(g),
		table: func(w io.Writer, _ bool) error { return printHolds(w, g) },
	}
	if err := show(cmdline.NewScreen(cmd.OutOrStdout()), l); err != nil {
		return fmt.Errorf("print holds: %w", err)
	}
	return nil
}

// means reports whether the flags and the argument mean a Cluster.
func (o *holdsOptions) means(namespace, cluster string) bool {
	return (o.namespace == "" || namespace == o.namespace) && (o.cluster == "" || cluster == o.cluster)
}

// printHolds writes the Clusters that wait, and those that have the places of rules.
func printHolds(w io.Writer, g *status.Gateway) error {
	if len(g.Holds) == 0 {
		return printers.Places(w, g)
	}
	if err := printers.Holds(w, g); err != nil {
		return err
	}
	if !slices.ContainsFunc(g.Rules, func(r status.InProcess) bool { return len(r.Places) > 0 }) {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return printers.Places(w, g)
}
