// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/cli/actions"
)

// The fields of actions.
var (
	rolloutField = actions.Field{Name: "rollout", Label: "ExtensionRollout", Required: true}
	clusterField = actions.Field{Name: "cluster", Label: "Cluster"}
	whatField    = actions.Field{Name: "variables", Label: "Calls about no Cluster", Options: []string{"true"}}
	liftedFields = []actions.Field{
		{Name: "handler", Label: "Handler", Required: true}, {Name: "hook", Label: "Hook", Required: true},
		{Name: "cluster", Label: "Cluster", Required: true},
	}
)

// Actions returns what the commands of this package do, for the page of a gateway in a cluster.
func Actions(hooks *catalog.Catalog) func(config *rest.Config) ([]actions.Action, error) {
	return func(config *rest.Config) ([]actions.Action, error) {
		c, err := newClient(config)
		if err != nil {
			return nil, err
		}
		return actionsOf(hooks, c), nil
	}
}

func actionsOf(hooks *catalog.Catalog, c client.Client) []actions.Action {
	// of returns the action of a command about a rollout, whose name and text are used; work is what the command does.
	of := func(
		cmd *cobra.Command, title string, asks bool, work func(context.Context, *rolloutWork, actions.Values) error,
		more ...actions.Field,
	) actions.Action {
		a := actions.Action{
			Name: cmd.Name(), Title: title, Asks: asks, Fields: append([]actions.Field{rolloutField}, more...),
			Run: func(ctx context.Context, v actions.Values, in io.Reader, out io.Writer) error {
				r := &rolloutWork{
					Client: c, objects: clusterRollouts{c}, name: v[rolloutField.Name], dialog: dialog{in: in, out: out},
				}
				return work(ctx, r, v)
			},
		}
		if !asks {
			a.Does = strings.ReplaceAll(cmd.Long, "\n", " ")
		}
		return a
	}
	return []actions.Action{
		of(newRolloutApproveCommand(), "Approve", true, func(ctx context.Context, r *rolloutWork, v actions.Values) error {
			a := approval{clusters: oneOf(v), variables: v[whatField.Name] != ""}
			return a.approve(ctx, r)
		}, clusterField, whatField),
		of(newRolloutPromoteCommand(), "Promote", true, func(ctx context.Context, r *rolloutWork, _ actions.Values) error {
			return r.promote(ctx, false)
		}),
		of(newRolloutPauseCommand(), "Pause", false, func(ctx context.Context, r *rolloutWork, _ actions.Values) error {
			return r.stop(ctx)
		}),
		of(newRolloutResumeCommand(), "Resume", false, func(ctx context.Context, r *rolloutWork, _ actions.Values) error {
			return r.resume(ctx)
		}),
		of(newRolloutUndoCommand(), "Undo", true, func(ctx context.Context, r *rolloutWork, v actions.Values) error {
			return r.undo(ctx, oneOf(v))
		}, clusterField),
		{
			Name: "lift", Title: "Lift", Asks: true, Fields: liftedFields,
			Run: func(ctx context.Context, v actions.Values, in io.Reader, out io.Writer) error {
				l := lift{handler: v["handler"], hook: v["hook"], cluster: v["cluster"]}
				if err := l.parse(hooks); err != nil {
					return err
				}
				return l.run(ctx, hooks, &liftWork{c, dialog{in: in, out: out}})
			},
		},
	}
}

// oneOf returns the Cluster that is named, if one is.
func oneOf(v actions.Values) []string {
	if v[clusterField.Name] == "" {
		return nil
	}
	return []string{v[clusterField.Name]}
}
