// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// handlersOptions are the flags of hookgate get handlers. One of server and diagnostics is what is asked; they share
// the flags about credentials.
type handlersOptions struct {
	target.ClientOptions
	diagnostics string
	output      string
}

func newGetHandlersCommand(hooks *catalog.Catalog) *cobra.Command {
	var o handlersOptions
	cmd := &cobra.Command{
		Use:     "handlers",
		Aliases: []string{"handler"},
		Short:   "List the handlers of a gateway, or of an extension",
		Long: "List the handlers that are registered with a gateway, with the settings in effect: timeout,\n" +
			"failure policy, order, and the version of the objects that the handlers receive. HANDLER is the name\n" +
			"under which the gateway registers the handler, and OFFERED AS is the name that Cluster API sees;\n" +
			"\"hookgate call --handler\" takes both. For each lifecycle hook, Cluster API sees one handler, which\n" +
			"stands for all handlers with the same value of OFFERED AS, and has a timeout of 30s. STATE is\n" +
			"Unknown until the gateway has called the handler.\n\n" +
			"With --server, list the handlers that a gateway or an extension announces to callers such as Cluster\n" +
			"API, in the answer to Discovery. Flags for credentials have the same effect if no flag names a\n" +
			"gateway. CALLER TIMEOUT is how long a caller should wait. A gateway adds at most one second to TIMEOUT\n" +
			"(10s becomes 11s), so that the gateway can end a call, and answer, before the caller gives up.",
		Example: "  hookgate get handlers\n" +
			"  hookgate get handlers --context management\n" +
			"  hookgate get handlers --diagnostics https://hookgate.example:8443 --ca ca.crt --token-file token -o wide\n" +
			"  hookgate get handlers --server grpcs://127.0.0.1:9090 --ca dev-ca.crt -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cmdline.Usagef("want no names, got %q; \"hookgate describe EXTENSION\" shows the "+
					"handlers of one extension", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, hooks) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable,
		"format: table, wide (with more columns), name, yaml or json; with --server, yaml and json have the form of an "+
			"answer to Discovery")
	o.AddFlags(f)
	f.StringVar(&o.diagnostics, "diagnostics", target.DefaultDiagnostics,
		"diagnostics address of the gateway: http://HOST:PORT on this machine, https://HOST:PORT elsewhere")
	o.Gateway.AddFlags(f)
	f.Lookup("timeout").DefValue, o.Timeout = "10s", 10*time.Second
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{
		"context": target.CompleteContexts(&o.Gateway.Kube), "output": cmdline.CompleteFormats(formatWide, formatName),
	})
	return cmd
}

// run asks the diagnostics address, unless the flags are those of a server.
func (o *handlersOptions) run(cmd *cobra.Command, hooks *catalog.Catalog) error {
	changed := cmd.Flags().Changed
	if changed("server") && changed("diagnostics") {
		return cmdline.Usagef("--server and --diagnostics: handlers are listed from a server or from a diagnostics " +
			"address; give only one of these flags")
	}
	if asksServer(changed, o.Gateway.Selected(changed, "diagnostics")) {
		return o.discover(cmd, hooks)
	}
	return o.ofGateway(cmd)
}

// asksServer reports whether the flags that are set mean a server, and not a diagnostics address, which on this machine
// needs no credentials by default.
func asksServer(changed func(flag string) bool, inCluster bool) bool {
	credentials := []string{"ca", "cert", "key", "token", "token-file"}
	return changed("server") || !changed("diagnostics") && !inCluster && slices.ContainsFunc(credentials, changed)
}

// ofGateway lists the handlers that are registered with a gateway.
func (o *handlersOptions) ofGateway(cmd *cobra.Command) error {
	show, err := listPrinter(o.output)
	if err != nil {
		return err
	}
	from := target.StatusOptions{ClientOptions: o.ClientOptions}
	from.Server, from.ServerFlag = o.diagnostics, "--diagnostics"
	return from.Ask(cmd, func(c *target.StatusClient) error {
		g, _, err := c.Get(cmd.Context(), "")
		if err != nil {
			return err
		}
		handlers := printers.Registered(g)
		if len(handlers) == 0 {
			why := "."
			if len(g.Extensions) > 0 {
				why = "; \"hookgate get extensions\" shows why."
			}
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no handlers%s\n", c.Name(), why)
			if forPeople(o.output) {
				return nil
			}
		}
		l := &list{
			body:  membersOf("handlers", handlers),
			table: func(w io.Writer, wide bool) error { return printers.HandlersInEffect(w, handlers, wide) },
		}
		for i := range handlers {
			l.names = append(l.names, handlers[i].Name)
		}
		if err := show(cmdline.NewScreen(cmd.OutOrStdout()), l); err != nil {
			return fmt.Errorf("print handlers: %w", err)
		}
		return nil
	})
}
