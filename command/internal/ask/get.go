// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infracommand "github.com/hookgate/hookgate/infrastructure/command"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
)

// NewGetCommand returns the command hookgate get.
func NewGetCommand(hooks *catalog.Catalog) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get {handlers | extensions | rollouts | rules | jobs | chains | policies | holds | routes | clusters | " +
			"machines | pools}",
		Short: "List what a gateway knows, or the objects of the infrastructure provider",
		RunE:  cmdline.Choose("get", gettable),

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(newGetHandlersCommand(hooks), newGetExtensionsCommand(), newGetHoldsCommand(), newGetRoutesCommand())
	for _, kind := range allkinds.Own() {
		cmd.AddCommand(newGetListedCommand(&kind))
	}
	cmd.AddCommand(infracommand.NewGet(infracommand.Formats{
		Names: []string{formatWide, formatName}, Printer: infrastructurePrinter,
	})...)
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
	mandated := codec.New(hooks)
	server, disconnect, err := o.Connect(cmd, mandated, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer disconnect()
	handlers, err := server.Handlers(cmd.Context(), hooks)
	if err != nil {
		return fmt.Errorf("get handlers: %w", err)
	}
	slices.SortStableFunc(handlers, func(a, b *hooksv1alpha1.ExtensionHandler) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	if len(handlers) == 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no handlers.\n", server.Name())
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
		table: func(w io.Writer, _ bool) error { return printers.Handlers(w, handlers) },
	}
	for _, h := range handlers {
		l.names = append(l.names, h.GetName())
	}
	if err := show(cmdline.NewScreen(cmd.OutOrStdout()), l); err != nil {
		return fmt.Errorf("print handlers: %w", err)
	}
	return nil
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

// infrastructurePrinter returns what prints the lists of the infrastructure provider, and whether it is for people.
func infrastructurePrinter(format string) (func(w io.Writer, l *infracommand.List) error, bool, error) {
	show, err := listPrinter(format)
	if err != nil {
		return nil, false, err
	}
	return func(w io.Writer, l *infracommand.List) error {
		return show(cmdline.NewScreen(w), &list{body: membersOf(l.Member, l.Items), names: l.Names, table: l.Table})
	}, forPeople(format), nil
}

// forPeople reports whether a format is a table, of which nothing is left if there are no rows.
func forPeople(format string) bool {
	return format != cmdline.FormatYAML && format != cmdline.FormatJSON
}

// listPrinter returns what prints lists.
func listPrinter(format string) (func(s *cmdline.Screen, l *list) error, error) {
	switch format {
	case cmdline.FormatTable, formatWide:
		return func(s *cmdline.Screen, l *list) error {
			wide := format == formatWide
			s.Full = "-o " + formatWide
			return s.Write(wide, func(w io.Writer) error { return l.table(w, wide) })
		}, nil
	case formatName:
		return func(s *cmdline.Screen, l *list) error {
			return s.Write(true, func(w io.Writer) error {
				for _, name := range l.names {
					_, _ = fmt.Fprintln(w, text.Printable(name)) // to a buffer
				}
				return nil
			})
		}, nil
	}
	printer, err := cmdline.NewPrinter(format)
	if err != nil {
		return nil, cmdline.Usagef("--output %q: want table, wide, name, yaml or json", format)
	}
	return func(s *cmdline.Screen, l *list) error {
		body, err := l.body()
		if err != nil {
			return err
		}
		return printer(s.Out, body, nil)
	}, nil
}
