// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/feature"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/difference"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/extensions"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/machines"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/store"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/topology"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/renderflags"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// What a render is compared with.
const (
	diffLive   = "live"
	diffRender = "render"
)

// options are the flags.
type options struct {
	kubeconfig, context, namespace string
	side                           side
	against                        side
	registeredAs                   string
	credentials                    extensions.Credentials
	diff, output, featureGates     string
}

// side are the flags of which a comparison has two sets.
type side struct {
	files                    []string
	server, extensionConfigs string
	set                      []string
}

func (o *options) addFlags(f *pflag.FlagSet) {
	renderflags.Add(f, renderflags.Targets{
		Files: &o.side.files, Server: &o.side.server,
		ExtensionConfigs: &o.side.extensionConfigs, Set: &o.side.set,
		AgainstFiles: &o.against.files, AgainstServer: &o.against.server,
		AgainstExtensionConfigs: &o.against.extensionConfigs, AgainstSet: &o.against.set,
		Kubeconfig: &o.kubeconfig, Context: &o.context, Namespace: &o.namespace, RegisteredAs: &o.registeredAs,
		Diff: &o.diff, Output: &o.output, FeatureGates: &o.featureGates,
		CA: &o.credentials.CA, Cert: &o.credentials.Cert, Key: &o.credentials.Key,
		TokenFile: &o.credentials.TokenFile, Timeout: &o.credentials.Timeout,
	})
}

// check returns what is wrong with the flags, and fills in those that follow from others.
func (o *options) check(args []string) error {
	a := &o.against
	if a.server != "" || a.extensionConfigs != "" || len(a.files) > 0 || len(a.set) > 0 {
		if o.diff == diffLive {
			return cmdline.Usagef("--against-… needs --diff render, because --diff live compares with the live objects")
		}
		o.diff = diffRender
	}
	switch {
	case len(args) == 0 && len(o.side.files) == 0:
		return cmdline.Usagef("say what to render: -f FILE, or cluster/NAME of a management cluster")
	case !slices.Contains([]string{"", diffLive, diffRender}, o.diff):
		return cmdline.Usagef("--diff %q: want live or render", o.diff)
	case !slices.Contains([]string{"", "yaml", "json", "table"}, o.output):
		return cmdline.Usagef("--output %q: want yaml, json or table", o.output)
	case o.side.server != "" && o.side.extensionConfigs != "", a.server != "" && a.extensionConfigs != "":
		return cmdline.Usagef("--server and --extension-configs: give only one of them for each render")
	case o.diff == diffLive && !o.isLive():
		return cmdline.Usagef("--diff live needs a cluster: leave out -f, or use --context or --kubeconfig")
	case (o.credentials.Cert == "") != (o.credentials.Key == ""):
		return cmdline.Usagef("--cert and --key are needed together")
	case o.credentials.Timeout <= 0:
		return cmdline.Usagef("--timeout: want more than 0, got %s", o.credentials.Timeout)
	}
	if a.server == "" && a.extensionConfigs == "" {
		a.server, a.extensionConfigs = o.side.server, o.side.extensionConfigs
	}
	if o.output == "" {
		o.output = "yaml"
		if o.diff != "" {
			o.output = "table"
		}
	}
	return nil
}

// isLive reports whether an API server is read.
func (o *options) isLive() bool {
	return len(o.side.files) == 0 || o.context != "" || o.kubeconfig != ""
}

// run runs the command.
func (o *options) run(cmd *cobra.Command, args []string) error {
	if err := o.check(args); err != nil {
		return err
	}
	if err := feature.MutableGates.Set("ClusterTopology=true,RuntimeSDK=true," + o.featureGates); err != nil {
		return cmdline.Usagef("--feature-gates: %w", err)
	}
	hooks, versions, err := gateway.Hooks()
	if err != nil {
		return err
	}
	in, err := o.input(cmd, args, hooks, versions)
	if err != nil {
		return err
	}
	now, err := in.render(cmd.Context(), &o.side, nil)
	if err != nil {
		return err
	}
	defer now.Close()
	if o.diff == "" {
		return printObjects(cmd.OutOrStdout(), now, o.output)
	}
	result, err := in.compare(cmd, now)
	if err != nil {
		return err
	}
	if err := result.print(cmd.OutOrStdout(), o.output); err != nil {
		return err
	}
	if len(result.Differences) > 0 {
		return errDifferent
	}
	return nil
}

// compare compares a render as the flags say.
func (in *input) compare(cmd *cobra.Command, now *topology.Render) (*result, error) {
	ctx, o := cmd.Context(), in.options
	var before map[string]*unstructured.Unstructured
	var other *topology.Render
	if o.diff == diffLive {
		var err error
		if before, err = difference.Live(now); err != nil {
			return nil, err
		}
	} else {
		objects, err := store.Read(o.against.files, cmd.InOrStdin())
		if err != nil {
			return nil, err
		}
		if other, err = in.render(ctx, &o.against, objects); err != nil {
			return nil, fmt.Errorf("the second render: %w", err)
		}
		defer other.Close()
		before = difference.Objects(other)
	}
	differences, err := difference.Compare(before, now, other)
	if err != nil {
		return nil, err
	}
	effects, err := machines.Effects(ctx, before, now, differences)
	if err != nil {
		return nil, err
	}
	name := client.ObjectKeyFromObject(now.Cluster).String()
	return &result{Cluster: name, Differences: differences, Machines: effects}, nil
}

// input is what renders have in common.
type input struct {
	options   *options
	hooks     *catalog.Catalog
	versions  *hookversion.Converter
	live      client.Reader // nil without a cluster
	namespace string
	name      string // of the Cluster; empty for the only one
	objects   []*unstructured.Unstructured
	notes     io.Writer
}

// input reads the files, and opens the cluster.
func (o *options) input(
	cmd *cobra.Command, args []string, hooks *catalog.Catalog, versions *hookversion.Converter,
) (*input, error) {
	in := &input{options: o, hooks: hooks, versions: versions, notes: cmd.ErrOrStderr()}
	for _, arg := range args {
		in.name = arg
		if kind, name, ok := strings.Cut(arg, "/"); ok {
			if in.name = name; !strings.EqualFold(kind, "cluster") && !strings.EqualFold(kind, "clusters") {
				return nil, cmdline.Usagef("%q: want cluster/NAME", arg)
			}
		}
	}
	var err error
	if in.objects, err = store.Read(o.side.files, cmd.InOrStdin()); err != nil {
		return nil, err
	}
	if in.namespace = o.namespace; !o.isLive() {
		if in.namespace == "" {
			in.namespace = "default"
		}
		return in, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	found := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{CurrentContext: o.context})
	config, err := found.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w: want -f FILE, or --kubeconfig FILE", err)
	}
	if in.namespace == "" {
		if in.namespace, _, err = found.Namespace(); err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
	}
	in.live, err = client.New(rest.AddUserAgent(config, "hookgate-render"), client.Options{Scheme: store.Scheme()})
	return in, err
}

// render renders one side. other are the objects that it has in place of those of the files.
func (in *input) render(
	ctx context.Context, s *side, other []*unstructured.Unstructured,
) (*topology.Render, error) {
	objects, err := store.New(ctx, append(slices.Clone(in.objects), other...), in.namespace, in.live)
	if err != nil {
		return nil, err
	}
	name, err := in.cluster(ctx, objects)
	if err != nil {
		return nil, err
	}
	mandated := codec.New(in.hooks)
	x := &extensions.Client{
		Hooks: in.hooks, Codec: mandated, Settings: settings(objects), RegisteredAs: in.options.registeredAs,
	}
	switch {
	case s.server != "":
		x.Server, err = extensions.Dial(s.server, in.options.credentials, mandated, "hookgate-render/"+ownVersion())
	case s.extensionConfigs != "":
		x.Server, err = extensions.Open(ctx, s.extensionConfigs, in.hooks, in.versions, in.notes)
	}
	if err != nil {
		return nil, err
	}
	r, err := topology.New(ctx, topology.Config{
		Store: objects, Cluster: name, Extensions: x,
		Change: func(c *clusterv1.Cluster) error { return change(c, s.set) },
	})
	if err != nil {
		return nil, err
	}
	for _, w := range r.Warnings {
		_, _ = fmt.Fprintf(in.notes, "Warning: %s\n", text.Printable(w))
	}
	return r, nil
}

// cluster returns the name of the Cluster to render.
func (in *input) cluster(ctx context.Context, objects *store.Store) (client.ObjectKey, error) {
	if in.name != "" {
		return client.ObjectKey{Namespace: in.namespace, Name: in.name}, nil
	}
	names, err := objects.Clusters(ctx)
	if err != nil {
		return client.ObjectKey{}, err
	}
	if len(names) != 1 {
		return client.ObjectKey{}, cmdline.Usagef("which Cluster? Add cluster/NAME to the command (the files have "+
			"%s with a topology)",
			text.Plural(len(names), "Cluster"))
	}
	return names[0], nil
}

// settings returns how the settings of ExtensionConfigs are found.
func settings(objects *store.Store) func(context.Context, string) map[string]string {
	return func(ctx context.Context, name string) map[string]string {
		var x runtimev1.ExtensionConfig
		if err := objects.Get(ctx, client.ObjectKey{Name: name}, &x); err != nil {
			return nil // it may not be readable, or be the gateway's
		}
		return x.Spec.Settings
	}
}

// change changes a Cluster as flags say.
func change(c *clusterv1.Cluster, set []string) error {
	for _, s := range set {
		name, value, ok := strings.Cut(s, "=")
		variable, isVariable := strings.CutPrefix(name, "variables.")
		switch {
		case !ok:
			return cmdline.Usagef("--set %q: want NAME=VALUE", s)
		case name == "version":
			c.Spec.Topology.Version = value
		case name == "class":
			c.Spec.Topology.ClassRef.Name = value
		case isVariable:
			body, err := yaml.YAMLToJSON([]byte(value))
			if err != nil {
				return cmdline.Usagef("--set %q: %w", s, err)
			}
			setVariable(c, variable, body)
		default:
			return cmdline.Usagef("--set %q: want version, class or variables.NAME", s)
		}
	}
	return nil
}

func setVariable(c *clusterv1.Cluster, name string, value []byte) {
	v := apiextensionsv1.JSON{Raw: value}
	for i := range c.Spec.Topology.Variables {
		if c.Spec.Topology.Variables[i].Name == name {
			c.Spec.Topology.Variables[i].Value = v
			return
		}
	}
	c.Spec.Topology.Variables = append(c.Spec.Topology.Variables, clusterv1.ClusterVariable{Name: name, Value: v})
}
