// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// discoverNewest calls ask with each version of Discovery, the newest first, until the extension has one. If it has
// none, the error is that of the newest version.
func discoverNewest(
	c *catalog.Catalog, ask func(h *catalog.Hook) (d Discovered, absent bool, err *hook.Error),
) (Discovered, error) {
	var first *hook.Error
	for _, h := range c.Discoveries() {
		d, absent, err := ask(h)
		switch {
		case err == nil:
			return d, nil
		case !absent:
			return Discovered{}, err
		case first == nil:
			first = err
		}
	}
	if first == nil {
		first = hook.Errorf(hook.Internal, "discover handlers: the catalog has no hook %s", hook.Discovery)
	}
	return Discovered{}, first
}

// handlersOf returns the handlers in an answer to discovery of any version.
func handlersOf(answer proto.Message) []*hooksv1alpha1.ExtensionHandler {
	if a, ok := answer.(*hooksv1alpha1.DiscoveryResponse); ok {
		return a.GetHandlers()
	}
	out := &hooksv1alpha1.DiscoveryResponse{}
	catalog.CopySame(out.ProtoReflect(), answer.ProtoReflect())
	return out.GetHandlers()
}
