// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
)

// withFailurePolicy hides errors of next from handlers that are registered with the policy Ignore: those of a call that
// could not be completed, or not be begun because the operator's policy failed, and nothing else. The answer is then an
// empty success, with nothing in it of what the extension may have begun to answer.
func withFailurePolicy(next Caller) Caller {
	return CallerFunc(func(ctx context.Context, c *extension.Call) (proto.Message, error) {
		response, err := next.Call(ctx, c)
		if err == nil || c.Handler.Handler.FailurePolicy != hook.Ignore || !hook.KindOf(err).Ignorable() {
			return response, err
		}
		c.Ignored = err
		return newSuccess(c.Hook), nil
	})
}
