// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/extension"
)

// convertVersions returns the link of a call chain that converts requests to the version of the hook that the handler
// implements, and responses back to the caller's version. Handlers are looked up by group and name of the hook, so
// the two can differ. A call that needs no conversion passes unchanged, body included.
//
// The links after it see a call of the handler's version. Its errors are of kind Conversion and name both versions.
func convertVersions(c *hookversion.Converter) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, call extension.Call) (extension.Result, error) {
			from, implemented := call.Hook, call.Handler.Handler.Hook
			to, ok := from.In(implemented.Version)
			if !ok {
				return extension.Result{}, hook.Errorf(hook.Conversion,
					"convert request: the handler implements %s, which the gateway does not serve: "+
						"it has to implement %s", implemented, from.Hub())
			}
			if to == from {
				return next(ctx, call)
			}
			request, lost, err := c.ConvertRequest(call.Request, from, to)
			if err != nil {
				return extension.Result{}, err
			}
			call.Hook, call.Request, call.Body = to, request, nil
			result, err := next(ctx, call)
			result.Lost = slices.Concat(lost, result.Lost)
			if err != nil {
				return result, err
			}
			result.Response, lost, err = c.ConvertResponse(result.Response, to, from)
			result.Lost = append(result.Lost, lost...)
			return result, err
		}
	}
}
