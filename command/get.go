// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/render"
	"github.com/hookgate/hookgate/internal/text"
)

func newGetCommand(hooks *catalog.Catalog) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get {handlers | extensions}",
		Short: "List what a gateway knows",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("cannot get %q: want handlers or extensions", args[0])
			}
			return usagef("say what to get: handlers or extensions")
		},
	}
	cmd.AddCommand(newGetHandlersCommand(hooks), newGetExtensionsCommand())
	return cmd
}

// getOptions are the flags of hookgate get handlers.
type getOptions struct {
	clientOptions
	output string
}

func newGetHandlersCommand(hooks *catalog.Catalog) *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:   "handlers",
		Short: "List the handlers of a gateway, or of an extension",
		Long: "List the handlers that the server's discovery returns, with the names that --handler of \"hookgate\n" +
			"call\" accepts.\n\n" +
			"A gateway has one handler for each lifecycle hook, named as the hook, which represents all\n" +
			"handlers registered for it.",
		Example: "  hookgate get handlers --ca dev-ca.crt\n" +
			"  hookgate get handlers --server grpcs://127.0.0.1:9090 --ca dev-ca.crt -o json",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, hooks) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "table", "format: table, or yaml or json, which are the discovery's answer")
	o.addFlags(f)
	return cmd
}

func (o *getOptions) run(cmd *cobra.Command, hooks *catalog.Catalog) error {
	h, ok := hooks.ByName(hook.Discovery)
	if !ok {
		return fmt.Errorf("hook %s is not in the catalog", hook.Discovery)
	}
	printer, err := newPrinter(o.output)
	if err != nil {
		return err
	}
	mandated := codec.New(hooks)
	server, err := o.open(mandated, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer server.client.Close()
	a, err := server.call(cmd.Context(), h, "", h.Request.New().Interface())
	if err != nil {
		return fmt.Errorf("get handlers: %w", err)
	}
	if err := checkStatus(h, a); err != nil {
		return err
	}
	discovered, ok := a.message.(*hooksv1alpha1.DiscoveryResponse)
	if !ok {
		return fmt.Errorf("get handlers: answer is a %T", a.message)
	}
	slices.SortStableFunc(discovered.GetHandlers(), func(a, b *hooksv1alpha1.ExtensionHandler) int {
		return cmp.Compare(a.GetName(), b.GetName())
	})
	body, err := mandated.Append(nil, discovered)
	if err != nil {
		return fmt.Errorf("print handlers: %w", err)
	}
	if len(discovered.GetHandlers()) == 0 {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s has no handlers.\n", text.URL(o.server))
		if o.output == formatTable {
			return nil
		}
	}
	err = printer(cmd.OutOrStdout(), body, func(w io.Writer) error {
		return render.Handlers(w, discovered.GetHandlers())
	})
	if err != nil {
		return fmt.Errorf("print handlers: %w", err)
	}
	return nil
}
