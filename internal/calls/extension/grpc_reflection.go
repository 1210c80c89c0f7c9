// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// maxServices is the number of services that a message names.
const maxServices = 5

// reflect asks an extension that implements discovery of no group for its services, and returns the handlers that they
// stand for. request returns a request for a discovery.
func (g *GRPC) reflect(
	ctx context.Context, cc registry.ClientConfig, request func(*catalog.Hook) *request,
) (Discovered, *hook.Error) {
	groups := g.config.Catalog.Discoveries()
	if len(groups) == 0 {
		return Discovered{}, hook.Errorf(hook.Internal, discovering+": the catalog has no hooks")
	}
	x := request(groups[0][0])
	channel, err := g.channels.get(cc, g.now())
	if err != nil {
		return Discovered{}, x.fail(hook.Unreachable, err.Error(), err)
	}
	defer channel.release()
	services, err := channel.conn.Services(ctx)
	switch {
	case ctx.Err() != nil:
		return Discovered{}, x.ended(ctx, err)
	case err != nil:
		return Discovered{}, x.fail(hook.BadResponse,
			"the extension has neither Discovery nor server reflection, so its handlers are unknown: "+
				"implement Discovery", err)
	}
	var d Discovered
	for _, versions := range groups {
		group, err := discovered(g.config.Catalog, versions[0], g.served(versions[0].Group, services))
		if err != nil {
			return Discovered{}, x.fail(hook.BadResponse, err.Error(), err)
		}
		d.Handlers = append(d.Handlers, group.Handlers...)
	}
	if len(d.Handlers) == 0 {
		return Discovered{}, x.fail(hook.BadResponse,
			fmt.Sprintf("the extension has no gRPC service for any hook; it has %s", listed(services)), nil)
	}
	return d, nil
}

// served returns a handler for each hook of a group that the services have.
func (g *GRPC) served(group string, services []string) []*hooksv1alpha1.ExtensionHandler {
	var handlers []*hooksv1alpha1.ExtensionHandler
	var before *catalog.Hook
	for _, h := range g.config.Catalog.Hooks() {
		service, _, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
		// Of several versions of a hook, the newest is called.
		if h.Group != group || h.Singleton() || !slices.Contains(services, service) ||
			before != nil && before.Hook == h.Hook {
			continue
		}
		before = h
		handlers = append(handlers, &hooksv1alpha1.ExtensionHandler{
			Name:        strings.ToLower(h.Hook),
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: h.APIVersion(), Hook: h.Hook},
		})
	}
	return handlers
}

// listed returns names as a message may show them.
func listed(names []string) string {
	if len(names) == 0 {
		return "no services at all"
	}
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = cut(n)
	}
	return text.Join(short, ", ", maxServices)
}
