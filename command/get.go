// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/render"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
)

func newGetCommand(hooks *catalog.Catalog) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get {handlers | extensions | rollouts | rules | jobs | chains | policies | holds | routes | clusters | " +
			"machines | pools}",
		Short: "List what a gateway knows, or the objects of the infrastructure provider",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("cannot get %q: want %s", args[0], gettable)
			}
			return usagef("say what to get: %s", gettable)
		},
	}
	cmd.AddCommand(newGetHandlersCommand(hooks), newGetExtensionsCommand(), newGetHoldsCommand(), newGetRoutesCommand())
	for _, kind := range allkinds.Own() {
		cmd.AddCommand(newGetListedCommand(&kind.Shown))
	}
	for _, kind := range infrastructureKinds {
		cmd.AddCommand(newGetInfrastructureCommand(kind))
	}
	return cmd
}

const gettable = "handlers, extensions, rollouts, rules, jobs, chains, policies, holds, routes, clusters, " +
	"machines or pools"

// discover lists the handlers in the answer of a server to discovery.
func (o *handlersOptions) discover(cmd *cobra.Command, hooks *catalog.Catalog) error {
	show, err := listPrinter(o.output)
	if err != nil {
		return err
	}
	closeTunnel, err := o.reach(cmd)
	if err != nil {
		return err
	}
	defer closeTunnel()
	mandated := codec.New(hooks)
	server, err := o.open(mandated, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer server.client.Close()
	handlers, err := server.handlers(cmd.Context(), hooks)
	if err != nil {
		return fmt.Errorf("get handlers: %w", err)
	}
	slices.SortStableFunc(handlers, func(a, b *hooksv1alpha1.ExtensionHandler) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	if len(handlers) == 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no handlers.\n", server.name())
		if forPeople(o.output) {
			return nil
		}
	}
	l := &list{
		body: func() ([]byte, error) {
			return mandated.Append(nil, &hooksv1alpha1.DiscoveryResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Handlers: handlers,
			})
		},
		table: func(w io.Writer, _ bool) error { return render.Handlers(w, handlers) },
	}
	for _, h := range handlers {
		l.names = append(l.names, h.GetName())
	}
	if err := show(newScreen(cmd.OutOrStdout()), l); err != nil {
		return fmt.Errorf("print handlers: %w", err)
	}
	return nil
}

// handlers returns the handlers of every group of hooks that the server has, in the newest version that it has of each.
func (s *server) handlers(ctx context.Context, hooks *catalog.Catalog) ([]*hooksv1alpha1.ExtensionHandler, error) {
	var handlers []*hooksv1alpha1.ExtensionHandler
	var first error // of a group that the server does not have
	answered := false
	for _, versions := range hooks.Discoveries() {
		for _, h := range versions {
			a, err := s.call(ctx, h, "", h.Request.New().Interface())
			var refused *callError
			if errors.As(err, &refused) && refused.absent {
				first = cmp.Or(first, err)
				continue
			}
			if err == nil {
				err = checkStatus(h, a)
			}
			if err != nil {
				return nil, err
			}
			answered = true
			handlers = append(handlers, catalog.HandlersOf(a.message)...)
			break
		}
	}
	if !answered {
		return nil, first
	}
	return handlers, nil
}

// list is what the formats of a list show.
type list struct {
	body  func() ([]byte, error) // the JSON
	names []string
	table func(w io.Writer, wide bool) error
}

// membersOf returns the JSON of a document whose only member has the items.
func membersOf(member string, items any) func() ([]byte, error) {
	return func() ([]byte, error) { return json.Marshal(map[string]any{member: items}) }
}

// forPeople reports whether a format is a table, of which nothing is left if there are no rows.
func forPeople(format string) bool { return format != formatYAML && format != formatJSON }

// listPrinter returns what prints lists.
func listPrinter(format string) (func(s *screen, l *list) error, error) {
	switch format {
	case formatTable, formatWide:
		return func(s *screen, l *list) error {
			wide := format == formatWide
			return s.write(wide, func(w io.Writer) error { return l.table(w, wide) })
		}, nil
	case formatName:
		return func(s *screen, l *list) error {
			return s.write(true, func(w io.Writer) error {
				for _, name := range l.names {
					_, _ = fmt.Fprintln(w, text.Printable(name)) // to a buffer
				}
				return nil
			})
		}, nil
	}
	printer, err := newPrinter(format)
	if err != nil {
		return nil, usagef("--output %q: want table, wide, name, yaml or json", format)
	}
	return func(s *screen, l *list) error {
		body, err := l.body()
		if err != nil {
			return err
		}
		return printer(s.out, body, nil)
	}, nil
}
