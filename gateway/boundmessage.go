// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// boundMessage cuts the message of an answer to what a condition has room for, and masks secrets in it, because callers
// show it to all who may read their objects. The rest of the answer, which belongs to the call, stays as it is.
func boundMessage(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		if err == nil {
			catalog.ChangeMessage(result.Response, func(message string) string {
				return redact.Bounded(message, limits.MessageBytes)
			})
		}
		return result, err
	}
}
