// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/survey"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// extensionsOptions are the flags of hookgate get extensions. Those about a cluster are named as those of hookgate
// preflight.
type extensionsOptions struct {
	target.StatusOptions
	group       string
	watchFilter string
	output      string
	watch       bool
	interval    time.Duration // between two looks with --watch
	name        string        // the only extension to list; empty for all
}

// extensionAliases are what people also call extensions.
var extensionAliases = append([]string{"extension", "ext"}, kubectlNames("ExtensionConfig")...)

// The formats of -o that only lists have.
const (
	formatWide = "wide"
	formatName = "name"
)

func newGetExtensionsCommand() *cobra.Command {
	o := extensionsOptions{interval: 2 * time.Second}
	cmd := &cobra.Command{
		Use:     "extensions [EXTENSION]",
		Aliases: extensionAliases,
		Short:   "List the extensions, and whether they are up",
		Long: "List the extensions of a gateway: whether they are up, since when, their calls in the last five\n" +
			"minutes, and their last errors.\n\n" +
			"With --kubeconfig or --context, list the ExtensionConfigs of the cluster with their conditions\n" +
			"Discovered and Available, which a gateway writes. Discovered shows whether the extension\n" +
			"has answered with its handlers. Available shows whether calls are sent to the extension: failures\n" +
			"open its circuit, and while the circuit is open, no calls are sent. The list needs no gateway.\n" +
			"Add --gateway to list the extensions of the gateway in that cluster.",
		Example: "  hookgate get extensions\n" +
			"  hookgate get extensions acme --watch\n" +
			"  hookgate get extensions --gateway hookgate-system --context management\n" +
			"  hookgate get extensions --diagnostics https://hookgate.example:8443 --ca ca.crt --token-file token\n" +
			"  hookgate get extensions --kubeconfig ~/.kube/config --extension-config-group runtime.hookgate.dev",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cmdline.Usagef("want the name of one extension at most, got %d names", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.name = args[0]
			}
			return o.run(cmd)
		},
	}
	cmd.ValidArgsFunction = target.CompleteStatus(&o.StatusOptions, extensionNames)
	f := o.AddFlags(cmd)
	f.StringVar(&o.group, "extension-config-group", controllers.ClusterAPIGroup,
		"API group of the ExtensionConfigs: "+controllers.ClusterAPIGroup+" or "+controllers.HookgateGroup)
	f.StringVar(&o.watchFilter, "watch-filter", "",
		"list only ExtensionConfigs whose label cluster.x-k8s.io/watch-filter has this value")
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable,
		"format: table, wide, name, yaml or json; yaml and json have the form of the gateway's status")
	f.BoolVarP(&o.watch, "watch", "w", false, "list again whenever the state of an extension changes")
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"output": cmdline.CompleteFormats(formatWide, formatName)})
	return cmd
}

func (o *extensionsOptions) run(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	fromGateway := o.Gateway.Name != "" || !o.Gateway.OfCluster() && (changed("diagnostics") || !target.InCluster())
	switch {
	case o.Gateway.OfCluster() && o.Gateway.Name == "" && changed("diagnostics"):
		return cmdline.Usagef("--kubeconfig or --context, and --diagnostics: extensions are listed from a cluster or " +
			"from a gateway; give only one of these flags, or use --gateway")
	case o.group != controllers.ClusterAPIGroup && o.group != controllers.HookgateGroup:
		return cmdline.Usagef("--extension-config-group: want %s or %s, got %q",
			controllers.ClusterAPIGroup, controllers.HookgateGroup, o.group)
	case o.Timeout <= 0:
		return cmdline.Usagef("--timeout: want more than 0, got %s", o.Timeout)
	case !fromGateway && (!forPeople(o.output) || o.watch):
		return cmdline.Usagef("--output yaml and json, and --watch, are for the extensions of a gateway; for " +
			"ExtensionConfigs, use kubectl get")
	}
	if fromGateway {
		return o.ofGateway(cmd)
	}
	return o.ofCluster(cmd)
}

// ofGateway lists the extensions of a gateway.
func (o *extensionsOptions) ofGateway(cmd *cobra.Command) error {
	show, err := listPrinter(o.output)
	if err != nil {
		return err
	}
	s, before := cmdline.NewScreen(cmd.OutOrStdout()), ""
	look := func(c *target.StatusClient) error {
		g, body, err := c.Get(cmd.Context(), o.name)
		if err != nil {
			return err
		}
		states := statesOf(g)
		if states == before {
			return nil
		}
		if before != "" {
			s.Clear()
		}
		before = states
		if len(g.Extensions) == 0 {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no extensions.\n", c.Name())
			return cmdline.NewScreen(cmd.ErrOrStderr()).Write(false, func(w io.Writer) error {
				return printers.Notices(w, g)
			})
		}
		err = show(s, &list{
			body: func() ([]byte, error) { return body, nil }, names: extensionNames(g),
			table: func(w io.Writer, wide bool) error {
				return errors.Join(printers.Extensions(w, g, wide), printers.Notices(w, g))
			},
		})
		if err != nil {
			return backoff.Permanent(fmt.Errorf("print extensions: %w", err))
		}
		return nil
	}
	if o.watch {
		return o.follow(cmd, look)
	}
	err = o.Ask(cmd, look)
	if permanent, ok := errors.AsType[*backoff.PermanentError](err); ok {
		return permanent.Err
	}
	return err
}

// follow looks at a gateway again and again until the command is interrupted. Once it has answered, the gateway may
// restart.
func (o *extensionsOptions) follow(cmd *cobra.Command, look func(c *target.StatusClient) error) error {
	ctx, seen, lost := cmd.Context(), false, false
	delays := backoff.NewExponentialBackOff(backoff.WithInitialInterval(o.interval),
		backoff.WithMaxInterval(10*time.Second), backoff.WithMaxElapsedTime(0))
	err := backoff.RetryNotify(func() error {
		err := o.Ask(cmd, func(c *target.StatusClient) error {
			return target.Every(ctx, o.interval, func() error {
				if err := look(c); err != nil {
					return err
				}
				if lost {
					_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s answers again.\n", c.Name())
				}
				seen, lost = true, false
				delays.Reset()
				return nil
			})
		})
		if err != nil && !seen {
			return backoff.Permanent(err)
		}
		return err
	}, backoff.WithContext(delays, ctx), func(err error, _ time.Duration) {
		if !lost {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s\nTrying again until the gateway answers.\n", err)
		}
		lost = true
	})
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it was interrupted
	}
	return err
}

// statesOf returns a text that differs if the state of an extension does, or what needs attention. It is not empty.
func statesOf(g *status.Gateway) string {
	var b strings.Builder
	for i := range g.Extensions {
		x := &g.Extensions[i]
		fmt.Fprintf(&b, "%s %s %s %t %d %t\n", x.Name, x.State, x.Circuit.State, x.Stale, len(x.Handlers), x.Expiring != "")
	}
	for _, n := range g.Notices {
		fmt.Fprintln(&b, n.Name, n.Text, n.Details)
	}
	return b.String() + "."
}

// OfCluster lists the ExtensionConfigs of a cluster.
func (o *extensionsOptions) ofCluster(cmd *cobra.Command) error {
	show, err := listPrinter(o.output)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.Timeout, fmt.Errorf("not done within %s", o.Timeout))
	defer cancel()
	config, err := o.Gateway.Kube.Load()
	if err != nil {
		return err
	}
	from, err := survey.NewCluster(config, o.watchFilter, o.group)
	if err != nil {
		return err
	}
	states, err := from.States(ctx)
	if err != nil {
		return fmt.Errorf("get extensions: %w", cmp.Or(context.Cause(ctx), err))
	}
	if o.name != "" {
		states = slices.DeleteFunc(states, func(s survey.State) bool { return s.Name != o.name })
		if len(states) == 0 {
			return errors.New(target.WithHint(fmt.Sprintf("there is no ExtensionConfig %q", o.name),
				"See \"hookgate get extensions\"."))
		}
	}
	if len(states) == 0 {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "There are no ExtensionConfigs.")
		return nil
	}
	l := &list{table: func(w io.Writer, _ bool) error { return printStates(w, states) }}
	for i := range states {
		l.names = append(l.names, states[i].Name)
	}
	if err := show(cmdline.NewScreen(cmd.OutOrStdout()), l); err != nil {
		return fmt.Errorf("print extensions: %w", err)
	}
	return nil
}

// printStates writes a row for each extension, with the message of the first condition that is not true.
func printStates(w io.Writer, states []survey.State) error {
	t := table.New(w)
	t.Columns("NAME", "HANDLERS", "DISCOVERED", "AVAILABLE", "MESSAGE")
	t.Optional("MESSAGE", "HANDLERS")
	t.Below("NAME", "MESSAGE")
	for i := range states {
		s := &states[i]
		t.Row(s.Name, strconv.Itoa(s.Handlers), conditionText(s.Discovered), conditionText(s.Available),
			cmp.Or(complaint(s.Discovered), complaint(s.Available)))
	}
	return t.Flush()
}

// conditionText returns the status of a condition, with the reason if it is not true.
func conditionText(c *metav1.Condition) string {
	switch {
	case c == nil:
		return ""
	case c.Status == metav1.ConditionTrue:
		return string(c.Status)
	}
	return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
}

// complaint returns the message of a condition that is not true.
func complaint(c *metav1.Condition) string {
	if c == nil || c.Status == metav1.ConditionTrue {
		return ""
	}
	return c.Message
}
