// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/conformance"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/render"
)

// mostCompletions is more than a person reads.
const mostCompletions = 1000

// completionTimeout is how long a shell waits for the names that a gateway knows. Only tests change it.
var completionTimeout = 2 * time.Second

type completion = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// complete returns a completion of the names that f returns. Without any, it completes nothing, in silence.
func complete(f func(cmd *cobra.Command, args []string) []string) completion {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		var found []string
		for _, name := range f(cmd, args) {
			if strings.ContainsFunc(name, special) {
				continue
			}
			if strings.HasPrefix(strings.ToLower(name), strings.ToLower(typed)) && len(found) < mostCompletions {
				found = append(found, name)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

// special reports whether a shell could take a character for more than a part of a name. Servers have sent most names.
func special(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune("-._/@:+=", r)
}

// completeFlags registers completions of flags that a command has.
func completeFlags(cmd *cobra.Command, flags map[string]completion) {
	for name, f := range flags {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, f) // fails only for a flag that is not there, or for a second time
		}
	}
}

// completeHooks completes the name of a hook, as the first argument.
func completeHooks(hooks *catalog.Catalog) completion {
	return complete(func(_ *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		var names []string
		for _, h := range hooks.Hooks() {
			names = append(names, h.Hook)
		}
		return names
	})
}

// completeContexts completes the contexts of the kubeconfig.
func completeContexts(o *kubeOptions) completion {
	return complete(func(*cobra.Command, []string) []string {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = o.kubeconfig
		config, err := rules.Load()
		if err != nil {
			return nil
		}
		var names []string
		for name := range config.Contexts {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	})
}

// completeChecks completes the identifiers of checks, and their families.
func completeChecks() completion {
	return complete(func(*cobra.Command, []string) []string {
		var names []string
		for _, c := range conformance.Checks() {
			family, _, _ := strings.Cut(c.ID, ".")
			names = append(names, c.ID, family)
		}
		slices.Sort(names)
		return slices.Compact(names)
	})
}

// completeStatus completes names in the status of the gateway that the flags name.
func completeStatus(o *statusOptions, names func(g *status.Gateway) []string) completion {
	return complete(func(cmd *cobra.Command, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		defer briefly(cmd)()
		o.timeout = completionTimeout
		var found []string
		_ = o.ask(cmd, func(c *statusClient) error { // a gateway that cannot be asked completes nothing
			g, _, err := c.get(cmd.Context(), "")
			if err == nil {
				found = names(g)
			}
			return err
		})
		return found
	})
}

// completeFormats completes the formats of -o.
func completeFormats(more ...string) completion {
	return complete(func(*cobra.Command, []string) []string {
		return append([]string{formatTable, formatYAML, formatJSON}, more...)
	})
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

// completeHandlers completes the handlers of the hook that is the first argument, or of all hooks. A gateway says them
// at its diagnostics address, which on this machine needs no credentials, under the names that they are registered with
// and those that it offers. Servers that the flags name are asked for what they offer.
func (o *callOptions) completeHandlers(hooks *catalog.Catalog) completion {
	return complete(func(cmd *cobra.Command, args []string) []string {
		defer briefly(cmd)()
		o.timeout = completionTimeout
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
	from := statusOptions{o.clientOptions}
	from.server, from.serverFlag = defaultDiagnostics, "--diagnostics"
	_ = from.ask(cmd, func(c *statusClient) error {
		g, _, err := c.get(cmd.Context(), "")
		if err != nil {
			return err
		}
		for _, h := range render.Registered(g) {
			add(h.Hook, h.Name, h.OfferedAs)
		}
		return nil
	})
}

// offeredHandlers adds the names of the handlers in a server's answers to discovery; none if it cannot be asked.
func (o *callOptions) offeredHandlers(
	cmd *cobra.Command, hooks *catalog.Catalog, add func(hook string, names ...string),
) {
	closeTunnel, err := o.reach(cmd)
	if err != nil {
		return
	}
	defer closeTunnel()
	server, err := o.open(codec.New(hooks), io.Discard)
	if err != nil {
		return
	}
	defer server.client.Close()
	handlers, err := server.handlers(cmd.Context(), hooks)
	if err != nil {
		return
	}
	for _, h := range handlers {
		add(h.GetRequestHook().GetHook(), h.GetName())
	}
}

// briefly bounds the context of a command, and returns what ends it.
func briefly(cmd *cobra.Command) context.CancelFunc {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	cmd.SetContext(ctx)
	return cancel
}
