// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
)

// withHookVersion converts a request to the version of the hook that its handler implements, and the answer to the caller's.
// Handlers are looked up by group and name of the hook, so their version can differ from the caller's. A call that needs no
// conversion goes on as it is, body included.
//
// next sees the call as one of the handler's version. An error is of kind Conversion, and names both versions.
func withHookVersion(next Caller) Caller {
	return CallerFunc(func(ctx context.Context, c *extension.Call) (proto.Message, error) {
		if c.Handler.Handler.Hook.Version == c.Hook.Version {
			noteDeprecated(ctx, c.Hook, c.Handler.Name)
			return next.Call(ctx, c)
		}
		h, ok := c.Hook.In(c.Handler.Handler.Hook.Version)
		if !ok {
			return nil, hook.Errorf(hook.Conversion, "convert request: the handler implements %s, which the gateway does not serve: it has to implement %s",
				c.Handler.Handler.Hook, c.Hook.Hub())
		}
		noteDeprecated(ctx, h, c.Handler.Name)
		request, lost, err := c.Hook.ConvertRequest(c.Request, h)
		if err != nil {
			return nil, err
		}
		c.Lost = append(c.Lost, lost...)
		inner := &extension.Call{Hook: h, Handler: c.Handler, Request: request}
		response, err := next.Call(ctx, inner)
		c.Sent, c.Received = inner.Sent, inner.Received
		c.Lost = append(c.Lost, inner.Lost...)
		if err != nil {
			return nil, err
		}
		response, lost, err = h.ConvertResponse(response, c.Hook)
		if err != nil {
			return nil, err
		}
		c.Lost = append(c.Lost, lost...)
		return response, nil
	})
}

// inHub returns a request in the newest version of its hook: what selectors and the conditions of policies look at, so that
// they mean the same whatever version a caller uses.
func inHub(h *catalog.Hook, req proto.Message) (proto.Message, error) {
	if h == h.Hub() {
		return req, nil
	}
	converted, _, err := h.ConvertRequest(req, h.Hub())
	return converted, err
}
