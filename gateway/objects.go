// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/extension"
)

// convertObjects converts the Cluster API objects in requests to the version that the handler understands, and what
// responses say about them back to the caller's version. If the handler's version is not known, or is the one that was
// sent, the call passes unchanged, body included.
//
// Its errors are of kind Conversion for an object that cannot be converted, InvalidRequest for one that is malformed,
// TooLarge for one with too many elements, and BadResponse for a response that does not fit the object.
func convertObjects(objects *convert.Objects) extension.Link {
	return func(next extension.Caller) extension.Caller {
		if objects == nil {
			return next
		}
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			to := c.Handler.Handler.ClusterAPIVersion
			if to == "" {
				return next(ctx, c)
			}
			converted, err := objects.RequestGuarded(convert.Guard{Context: ctx, Reserve: c.Memory.Reserve()}, c.Request, to)
			if err != nil {
				return extension.Result{}, err
			}
			if converted.Message != c.Request {
				c.Request, c.Body = converted.Message, nil
			}
			result, err := next(ctx, c)
			result.Lost = slices.Concat(converted.Losses, result.Lost)
			if err != nil {
				return result, err
			}
			response, lost, err := converted.Response(result.Response)
			result.Response, result.Lost = response, append(result.Lost, lost...)
			return result, err
		}
	}
}
