// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"github.com/hookgate/hookgate/internal/extension"
)

// policyError fails the calls to handlers whose ExtensionPolicy could not be evaluated. It is inside the observer and
// the failure policy, so that they treat such a call as any other that fails.
func policyError(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		if c.PolicyError != nil {
			return extension.Result{}, c.PolicyError
		}
		return next(ctx, c)
	}
}
