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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/contract/render"
	"github.com/hookgate/hookgate/internal/infrastructure/overview"
	"github.com/hookgate/hookgate/provider"
)

// infrastructureListOptions are the flags of hookgate get clusters, machines and pools.
type infrastructureListOptions struct {
	kubeOptions
	namespace string
	cluster   string
	failing   bool
	output    string
	timeout   time.Duration
}

// infrastructureKind is a kind of the infrastructure provider.
type infrastructureKind struct {
	plural, singular, kind string
	list                   func(*status.Infrastructure) []status.InfrastructureObject
}

var infrastructureKinds = []infrastructureKind{
	{"clusters", "cluster", "HookgateCluster",
		func(s *status.Infrastructure) []status.InfrastructureObject { return s.Clusters }},
	{"machines", "machine", "HookgateMachine",
		func(s *status.Infrastructure) []status.InfrastructureObject { return s.Machines }},
	{"pools", "pool", "HookgateMachinePool",
		func(s *status.Infrastructure) []status.InfrastructureObject { return s.Pools }},
}

func newGetInfrastructureCommand(kind infrastructureKind) *cobra.Command {
	var o infrastructureListOptions
	cmd := &cobra.Command{
		Use:     kind.plural,
		Aliases: []string{kind.singular, kind.kind},
		Short:   "List the " + kind.kind + "s, what each waits for, and which call fails",
		Long: "List the " + kind.kind + "s of a management cluster: their state and since when they have it, what\n" +
			"each waits for, and the hook whose last call has failed. INSTANCES are those that exist according to the\n" +
			"extension's last answers, out of those that the objects say; where a pool should have another number, that\n" +
			"follows.",
		Example: "  hookgate get " + kind.plural + "\n" +
			"  hookgate get " + kind.plural + " -n team-a --cluster my-cluster --failing -o wide",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("want no names, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, &kind) },
	}
	f := cmd.Flags()
	o.addFlags(f)
	f.StringVarP(&o.namespace, "namespace", "n", "", "list only those of this namespace")
	f.StringVar(&o.cluster, "cluster", "", "list only those of this Cluster")
	f.BoolVar(&o.failing, "failing", false,
		"list only those that are not Ready, whose last call failed, or whose instances differ")
	f.StringVarP(&o.output, "output", "o", formatTable,
		"format: table, wide, with the class and the provider ID, name, yaml or json")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	completeFlags(cmd, map[string]completion{
		"output": completeFormats(formatWide, formatName), "context": completeContexts(&o.kubeOptions),
	})
	return cmd
}

func (o *infrastructureListOptions) run(cmd *cobra.Command, kind *infrastructureKind) error {
	show, err := listPrinter(o.output)
	if err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	config, err := o.load()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("not done within %s", o.timeout))
	defer cancel()
	reader, err := infrastructureReader(config)
	if err != nil {
		return err
	}
	s, err := readInfrastructure(ctx, reader, client.InNamespace(o.namespace))
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
		if forPeople(o.output) {
			return nil
		}
	}
	l := &list{
		body:  membersOf(kind.plural, objects),
		table: func(w io.Writer, wide bool) error { return render.Infrastructure(w, objects, s.Now, wide) },
	}
	for i := range objects {
		l.names = append(l.names, objects[i].Namespace+"/"+objects[i].Name)
	}
	if err := show(newScreen(cmd.OutOrStdout()), l); err != nil {
		return fmt.Errorf("print %s: %w", kind.plural, err)
	}
	return nil
}

// infrastructureReader returns a client of the objects of the infrastructure provider. It does not connect yet.
func infrastructureReader(config *rest.Config) (client.Reader, error) {
	scheme := runtime.NewScheme()
	if err := provider.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// readInfrastructure reads the objects of the infrastructure provider.
func readInfrastructure(
	ctx context.Context, reader client.Reader, options ...client.ListOption,
) (*status.Infrastructure, error) {
	objects, err := overview.Read(ctx, reader, options...)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the cluster has no infrastructure provider hookgate: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return objects.Summary(time.Now()), nil
}
