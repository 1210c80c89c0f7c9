// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/infrastructure"
	"github.com/hookgate/hookgate/infrastructure/overview"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// listOptions are the flags of hookgate get clusters, machines and pools.
type listOptions struct {
	target.KubeOptions
	namespace string
	cluster   string
	failing   bool
	output    string
	timeout   time.Duration
}

// listed is a kind of the infrastructure provider that is listed.
type listed struct {
	plural, singular, kind string
	list                   func(*status.Infrastructure) []status.InfrastructureObject
}

var allListed = []listed{
	{"clusters", "cluster", "HookgateCluster",
		func(s *status.Infrastructure) []status.InfrastructureObject { return s.Clusters }},
	{"machines", "machine", "HookgateMachine",
		func(s *status.Infrastructure) []status.InfrastructureObject { return s.Machines }},
	{"pools", "pool", "HookgateMachinePool",
		func(s *status.Infrastructure) []status.InfrastructureObject { return s.Pools }},
}

// List is a list in all its formats.
type List struct {
	// Member is the member of the JSON document that has the Items.
	Member string
	Items  any
	Names  []string
	Table  func(w io.Writer, wide bool) error
}

// Formats are the formats in which a program prints lists.
type Formats struct {
	Names []string
	// Printer returns a function that prints lists in a format, and whether they are for people, who need no empty one.
	Printer func(format string) (show func(w io.Writer, l *List) error, forPeople bool, err error)
}

// NewGet returns the commands of hookgate get that list the objects of the provider.
func NewGet(formats Formats) []*cobra.Command {
	var all []*cobra.Command
	for _, kind := range allListed {
		all = append(all, newGet(kind, formats))
	}
	return all
}

func newGet(kind listed, formats Formats) *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     kind.plural,
		Aliases: []string{kind.singular, kind.kind},
		Short:   "List the " + kind.kind + "s, what each waits for, and which call fails",
		Long: "List the " + kind.kind + "s of a management cluster. For each object, show the state and\n" +
			"its age, what the object waits for, and the hook whose last call failed. INSTANCES shows how many\n" +
			"instances exist according to the extension's last answers and, after the slash, how many there are\n" +
			"according to the objects in the cluster. For a pool, the desired number of instances follows in\n" +
			"parentheses, if it differs from the number of objects.",
		Example: "  hookgate get " + kind.plural + "\n" +
			"  hookgate get " + kind.plural + " -n team-a --cluster my-cluster --failing -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cmdline.Usagef("want no names, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, &kind, formats) },
	}
	f := cmd.Flags()
	o.AddFlags(f)
	f.StringVarP(&o.namespace, "namespace", "n", "", "list only objects in this namespace")
	f.StringVar(&o.cluster, "cluster", "", "list only objects of this Cluster")
	f.BoolVar(&o.failing, "failing", false,
		"list only objects that are not Ready, whose last call failed, or whose two numbers in INSTANCES differ")
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable,
		"format: table, wide (with the class and the provider ID), name, yaml or json")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{
		"output": cmdline.CompleteFormats(formats.Names...), "context": target.CompleteContexts(&o.KubeOptions),
	})
	return cmd
}

func (o *listOptions) run(cmd *cobra.Command, kind *listed, formats Formats) error {
	show, people, err := formats.Printer(o.output)
	if err != nil {
		return err
	}
	if o.timeout <= 0 {
		return cmdline.Usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	config, err := o.Load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("not done within %s", o.timeout))
	defer cancel()
	reader, err := infrastructure.NewReader(config)
	if err != nil {
		return err
	}
	s, err := overview.Summarize(ctx, reader, client.InNamespace(o.namespace))
	if err != nil {
		return fmt.Errorf("get %s: %w", kind.plural, cmp.Or(context.Cause(ctx), err))
	}
	objects := slices.DeleteFunc(kind.list(s), func(x status.InfrastructureObject) bool {
		return o.cluster != "" && x.Cluster != o.cluster || o.failing && x.Well()
	})
	if len(objects) == 0 {
		like := ""
		if o.namespace != "" || o.cluster != "" || o.failing {
			like = " like that"
		}
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "There are no %ss%s.\n", kind.kind, like)
		if people {
			return nil
		}
	}
	l := &List{
		Member: kind.plural, Items: objects,
		Table: func(w io.Writer, wide bool) error { return printers.Infrastructure(w, objects, s.Now, wide) },
	}
	for i := range objects {
		l.Names = append(l.Names, objects[i].Namespace+"/"+objects[i].Name)
	}
	if err := show(cmd.OutOrStdout(), l); err != nil {
		return fmt.Errorf("print %s: %w", kind.plural, err)
	}
	return nil
}
