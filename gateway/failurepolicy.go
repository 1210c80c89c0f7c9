// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
)

// failurePolicy hides the errors of handlers that are registered with the policy Ignore, if they are of a kind that can
// be ignored. The response is then an empty success, without any part of an incomplete answer.
func failurePolicy(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		if err == nil || c.Handler.Handler.FailurePolicy != hook.Ignore || !hook.KindOf(err).Ignorable() {
			return result, err
		}
		result.Response, result.Ignored = newSuccess(c.Hook), err
		return result, nil
	}
}
