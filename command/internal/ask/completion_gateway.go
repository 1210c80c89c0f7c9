// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// completeHandlers completes the handlers of the hook that is the first argument, or of all hooks. A gateway says them
// at its diagnostics address, which on this machine needs no credentials, under the names that they are registered with
// and those that it offers. Servers that the flags name are asked for what they offer.
func (o *callOptions) completeHandlers(hooks *catalog.Catalog) cmdline.Completion {
	return cmdline.Complete(func(cmd *cobra.Command, args []string) []string {
		defer cmdline.Briefly(cmd)()
		o.Timeout = cmdline.CompletionTimeout
		var names []string
		add := func(hook string, more ...string) {
			if len(args) == 0 || strings.EqualFold(hook, args[0]) {
				names = append(names, more...)
			}
		}
		if !cmd.Flags().Changed("server") {
			o.registeredHandlers(cmd, add)
		}
		if names == nil {
			o.offeredHandlers(cmd, hooks, add)
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
		slices.Sort(names)
		return slices.Compact(names)
	})
}

// registeredHandlers adds the names of the handlers in the status of a gateway; none if it cannot be asked.
func (o *callOptions) registeredHandlers(cmd *cobra.Command, add func(hook string, names ...string)) {
	from := target.StatusOptions{ClientOptions: o.ClientOptions}
	from.Server, from.ServerFlag = target.DefaultDiagnostics, "--diagnostics"
	_ = from.Ask(cmd, func(c *target.StatusClient) error {
		g, _, err := c.Get(cmd.Context(), "")
		if err != nil {
			return err
		}
		for _, h := range printers.Registered(g) {
			add(h.Hook, h.Name, h.OfferedAs)
		}
		return nil
	})
}

// offeredHandlers adds the names of the handlers in a server's answers to discovery; none if it cannot be asked.
func (o *callOptions) offeredHandlers(
	cmd *cobra.Command, hooks *catalog.Catalog, add func(hook string, names ...string),
) {
	server, disconnect, err := o.Connect(cmd, codec.New(hooks), io.Discard)
	if err != nil {
		return
	}
	defer disconnect()
	handlers, err := server.Handlers(cmd.Context(), hooks)
	if err != nil {
		return
	}
	for _, h := range handlers {
		add(h.GetRequestHook().GetHook(), h.GetName())
	}
}

// clusterNames returns the names of the Clusters that wait for a handler.
func clusterNames(g *status.Gateway) []string {
	var names []string
	for i := range g.Holds {
		names = append(names, g.Holds[i].Cluster)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// extensionNames returns the names of the extensions of a gateway.
func extensionNames(g *status.Gateway) []string {
	var names []string
	for i := range g.Extensions {
		names = append(names, g.Extensions[i].Name)
	}
	return names
}
