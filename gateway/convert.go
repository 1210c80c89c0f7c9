// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
)

// withConversion stands where requests are converted down to the version of the hook that a handler serves, and answers
// back up. Handlers are looked up by group and name of the hook, so that their version can differ from the caller's.
// Cluster API has one version of every hook, so there is nothing to convert yet; a handler of another version is refused.
func withConversion(next Caller) Caller {
	return CallerFunc(func(ctx context.Context, c *extension.Call) (proto.Message, error) {
		if have := c.Handler.Handler.Hook; have != c.Hook.GroupVersionHook {
			return nil, hook.Errorf(hook.Conversion, "convert request: the handler serves %s, and there is no conversion from %s", have, c.Hook.GroupVersionHook)
		}
		return next.Call(ctx, c)
	})
}
