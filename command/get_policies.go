// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/render"
	"github.com/hookgate/hookgate/internal/status"
)

// policiesOptions are the flags of hookgate get policies.
type policiesOptions struct {
	statusOptions
	output string
}

func newGetPoliciesCommand() *cobra.Command {
	var o policiesOptions
	cmd := &cobra.Command{
		Use:     "policies",
		Aliases: []string{"policy"},
		Short:   "List the ExtensionPolicies, and whether they are accepted",
		Long: "List the ExtensionPolicies of a gateway: what each is for, whether it is accepted, and why not. In a\n" +
			"cluster, these are the verdicts of the process that is asked; the leader writes its own into the\n" +
			"condition Accepted, which kubectl get extensionpolicies shows.",
		Example: "  hookgate get policies\n" +
			"  hookgate get policies --gateway hookgate-system --context management -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("want no names, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := o.addFlags(cmd)
	f.StringVarP(&o.output, "output", "o", formatTable,
		"format: table, wide, with the number of handlers that have the policy, name, yaml or json")
	completeFlags(cmd, map[string]completion{"output": completeFormats(formatWide, formatName)})
	return cmd
}

func (o *policiesOptions) run(cmd *cobra.Command) error {
	show, err := listPrinter(o.output)
	if err != nil {
		return err
	}
	return o.ask(cmd, func(c *statusClient) error {
		g, _, err := c.get(cmd.Context(), "")
		if err != nil {
			return err
		}
		if len(g.Policies) == 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no policies.\n", c.name())
			if o.output != formatYAML && o.output != formatJSON {
				return nil
			}
			g.Policies = []status.Policy{} // an empty list in JSON, not null
		}
		if g.MissedPolicies > 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "There are %d more, which the gateway does not list.\n", g.MissedPolicies)
		}
		l := &list{
			member: "policies", items: g.Policies,
			table: func(w io.Writer, wide bool) error { return render.Policies(w, g, wide) },
		}
		for i := range g.Policies {
			l.names = append(l.names, g.Policies[i].Name)
		}
		if err := show(newScreen(cmd.OutOrStdout()), l); err != nil {
			return fmt.Errorf("print policies: %w", err)
		}
		return nil
	})
}
