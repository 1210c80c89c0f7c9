// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/steady"
)

// steadyMessage masks in the message of an answer what changes from call to call, if the policy of the handler says
// so. It remembers nothing, so that all replicas make the same of a message. What is recorded is the message as it was.
// The answer belongs to the call: those who keep it copy its text.
func steadyMessage(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		if err == nil && c.Handler.Policy.Masking() == policy.Steady {
			catalog.ChangeMessage(result.Response, steady.Text)
		}
		return result, err
	}
}
