// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/controllers/source/cluster"
	"github.com/hookgate/hookgate/controllers/survey"
	"github.com/hookgate/hookgate/internal/table"
)

// extensionsOptions are the flags of hookgate get extensions, which are named as those of hookgate preflight.
type extensionsOptions struct {
	kubeconfig  string
	group       string
	watchFilter string
	timeout     time.Duration
}

func newGetExtensionsCommand() *cobra.Command {
	var o extensionsOptions
	cmd := &cobra.Command{
		Use:   "extensions --kubeconfig FILE",
		Short: "List the extensions that are registered in a cluster, and whether they can be called",
		Long: "List the ExtensionConfigs of a cluster with the conditions that a gateway writes: Discovered, whether\n" +
			"the extension has answered with its handlers, and Available, whether it is called. It is not while\n" +
			"its circuit is open, because it failed. get extensions needs no gateway.",
		Example: "  hookgate get extensions --kubeconfig ~/.kube/config --extension-config-group runtime.hookgate.dev",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster with the ExtensionConfigs; not needed in a Pod")
	f.StringVar(&o.group, "extension-config-group", cluster.ClusterAPIGroup,
		"API group of the ExtensionConfigs: "+cluster.ClusterAPIGroup+" or "+cluster.HookgateGroup)
	f.StringVar(&o.watchFilter, "watch-filter", "",
		"list only ExtensionConfigs whose label cluster.x-k8s.io/watch-filter has this value")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long everything may take")
	return cmd
}

func (o *extensionsOptions) run(cmd *cobra.Command) error {
	switch {
	case o.kubeconfig == "" && !inCluster():
		return usagef("--kubeconfig is required, for the ExtensionConfigs of a cluster")
	case o.group != cluster.ClusterAPIGroup && o.group != cluster.HookgateGroup:
		return usagef("--extension-config-group: want %s or %s, got %q",
			cluster.ClusterAPIGroup, cluster.HookgateGroup, o.group)
	case o.timeout <= 0:
		return usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("not done within %s", o.timeout))
	defer cancel()
	config, _, err := loadKubeconfig(o.kubeconfig)
	if err != nil {
		return err
	}
	from, err := survey.NewCluster(config, o.group, o.watchFilter)
	if err != nil {
		return err
	}
	states, err := from.States(ctx)
	if err != nil {
		return fmt.Errorf("get extensions: %w", cmp.Or(context.Cause(ctx), err))
	}
	if len(states) == 0 {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "There are no ExtensionConfigs.")
		return nil
	}
	if err := printStates(cmd.OutOrStdout(), states); err != nil {
		return fmt.Errorf("print extensions: %w", err)
	}
	return nil
}

// printStates writes a row for each extension, with the message of the first condition that is not true.
func printStates(w io.Writer, states []survey.State) error {
	t := table.New(w)
	t.Row("EXTENSION", "HANDLERS", "DISCOVERED", "AVAILABLE", "MESSAGE")
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
