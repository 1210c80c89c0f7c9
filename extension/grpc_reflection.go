// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/text"
	"github.com/hookgate/hookgate/registry"
)

// maxServices is the number of services that a message names.
const maxServices = 5

// reflect asks an extension that does not implement discovery for its services, and returns the answer to discovery
// that they stand for.
func (g *GRPC) reflect(ctx context.Context, cc registry.ClientConfig, x *request) (proto.Message, *hook.Error) {
	channel, err := g.channels.get(cc, g.now())
	if err != nil {
		return nil, x.fail(hook.Unreachable, err.Error(), err)
	}
	defer channel.release()
	services, err := channel.conn.Services(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, x.ended(ctx, err)
	case err != nil:
		return nil, x.fail(hook.BadResponse,
			"the extension has neither Discovery nor server reflection, so its handlers are unknown: "+
				"implement Discovery", err)
	}

	answer := &hooksv1alpha1.DiscoveryResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
	var served *catalog.Hook
	for _, h := range g.config.Catalog.Hooks() {
		service, _, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
		// Of several versions of a hook, the newest is called.
		if h.Singleton() || !slices.Contains(services, service) || served != nil && served.Hook == h.Hook {
			continue
		}
		served = h
		answer.Handlers = append(answer.Handlers, &hooksv1alpha1.ExtensionHandler{
			Name:        strings.ToLower(h.Hook),
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: h.APIVersion(), Hook: h.Hook},
		})
	}
	if len(answer.GetHandlers()) == 0 {
		return nil, x.fail(hook.BadResponse,
			fmt.Sprintf("the extension has none of the hooks' services, but %s", listed(services)), nil)
	}
	return answer, nil
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
