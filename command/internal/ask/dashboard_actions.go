// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/cli/actions"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// ClusterActions returns what commands do in a cluster.
type ClusterActions func(config *rest.Config) ([]actions.Action, error)

// serveActions serves the actions at an address of their own until the command's context is done, or stop is called.
func (o *dashboardOptions) serveActions(
	cmd *cobra.Command, c *target.StatusClient, page string,
) (s *actions.Server, stop func(), err error) {
	all, err := o.actions(c)
	if err != nil {
		return nil, nil, err
	}
	ctx := cmd.Context()
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen for actions: %w", err)
	}
	on := "Gateway " + c.Name()
	if o.Config != nil {
		on += ", and the cluster at " + o.Config.Host
	}
	s = actions.New(actions.Config{
		Address: listener.Addr().String(), Page: page, Target: on + ", with your rights.", Actions: all,
		Log: cmd.ErrOrStderr(),
	})
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: time.Minute,
		MaxHeaderBytes: 64 << 10, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	closed := context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }() // until it is closed
	return s, func() { closed(); _ = server.Close() }, nil
}

// actions returns what can be done. What is in a cluster is only done in the one in which the gateway is: without a
// tunnel to it, a kubeconfig may name any other one.
func (o *dashboardOptions) actions(c *target.StatusClient) ([]actions.Action, error) {
	all := []actions.Action{o.recordAction(c)}
	if o.Tunnel == nil {
		return all, nil
	}
	more, err := o.ofCluster(o.Config)
	if err != nil {
		return nil, err
	}
	return append(append(all, o.explainAction()), more...), nil
}

// recordAction is hookgate record.
func (o *dashboardOptions) recordAction(c *target.StatusClient) actions.Action {
	return actions.Action{
		Name: "record", Title: "Record", Streams: true, Longest: limits.DashboardRecordTime + time.Minute,
		Does: "Write the calls that the gateway makes to the handler into a file, in the folder in which hookgate " +
			"dashboard was started. The gateway removes the secrets that it recognizes before it sends a call.",
		Fields: []actions.Field{
			{Name: "handler", Label: "Handler", Required: true},
			{
				Name: "for", Label: "For", Required: true, Edited: true,
				Options: []string{"1m0s", "5m0s", limits.DashboardRecordTime.String()},
			},
		},
		Run: func(ctx context.Context, v actions.Values, in io.Reader, out io.Writer) error {
			duration, err := time.ParseDuration(v["for"])
			if err != nil {
				return cmdline.Usagef("for: %w", err)
			}
			r := recordOptions{StatusOptions: o.StatusOptions}
			order := recording.Order{Handler: v["handler"], For: duration, Bytes: recordBytes}
			if err := order.Check(); err != nil {
				return cmdline.Usagef("record %s: %w", order.Handler, err)
			}
			return r.record(carrier(ctx, in, out), c, order)
		},
	}
}

// recordBytes is the size at which a recording ends, as by default in hookgate record.
const recordBytes = 256 << 20

// explainAction is hookgate explain.
func (o *dashboardOptions) explainAction() actions.Action {
	return actions.Action{
		Name: "explain", Title: "Explain a request",
		Does: "Show which handlers and chains the gateway would call for a request, and why no others. No handler is " +
			"called.",
		Fields: []actions.Field{
			{Name: "cluster", Label: "Cluster"},
			{Name: "hook", Label: "Hook", Required: true, Edited: true},
			{Name: "handler", Label: "Handler or chain, if not all that match", Edited: true},
			{
				Name: "request", Label: "Request of the hook, or Cluster, as YAML or JSON", Required: true, Edited: true,
				Lines: true,
			},
		},
		Prepare: o.prepareExplained,
		Run: func(ctx context.Context, v actions.Values, _ io.Reader, out io.Writer) error {
			e := explainOptions{callOptions: callOptions{
				ClientOptions: o.ClientOptions, file: "-", handler: v["handler"], output: cmdline.FormatTable,
			}}
			e.connect = func(mandated *codec.Codec, errOut io.Writer) (*target.Server, func(), error) {
				server, err := o.OpenServer(mandated, errOut)
				if err != nil {
					return nil, nil, err
				}
				return server, server.Client.Close, nil
			}
			return e.run(carrier(ctx, strings.NewReader(v["request"]), out), o.hooks, v["hook"])
		},
	}
}

// prepareExplained gives the Cluster of a link as the request, with what selectors read, if the API server has it.
func (o *dashboardOptions) prepareExplained(ctx context.Context, v actions.Values) {
	key, err := target.ParseCluster(v["cluster"])
	if err != nil {
		return
	}
	cluster := map[string]any{"name": key.Name, "namespace": key.Namespace}
	whole := map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": cluster}
	if found, err := o.getCluster(ctx, key); err == nil {
		found.SetManagedFields(nil)
		unstructured.RemoveNestedField(found.Object, "status")
		whole = found.Object
	}
	if body, err := yaml.Marshal(whole); err == nil && len(body) <= limits.DashboardFormBytes {
		v["request"] = string(body)
	}
}

func (o *dashboardOptions) getCluster(ctx context.Context, key client.ObjectKey) (*unstructured.Unstructured, error) {
	c, err := client.New(o.Config, client.Options{})
	if err != nil {
		return nil, err
	}
	return target.GetCluster(ctx, c, key)
}

// carrier returns a command that has what a command's work takes from it.
func carrier(ctx context.Context, in io.Reader, out io.Writer) *cobra.Command {
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(out)
	return cmd
}
