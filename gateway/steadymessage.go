// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/steady"
)

// steadyMessage masks in the message of an answer what changes from call to call, if the policy of the handler says
// so. It remembers nothing, so that all replicas make the same of a message. What is recorded is the message as it was.
func steadyMessage(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		if err != nil || c.Handler.Policy == nil || c.Handler.Policy.Messages != policy.Steady {
			return result, err
		}
		r, ok := result.Response.(outcome.Response)
		if !ok || r.GetMessage() == "" {
			return result, nil
		}
		if masked := steady.Text(r.GetMessage()); masked != r.GetMessage() {
			m := r.ProtoReflect()
			m.Set(m.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(masked))
		}
		return result, nil
	}
}
