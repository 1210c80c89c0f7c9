// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/network/budget"
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
					"convert request: the handler implements %s, which the gateway does not serve; "+
						"the handler must implement %s", implemented, from.Hub())
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
			if to == "" || c.Request == nil { // a request that was not built has nothing to convert
				return next(ctx, c)
			}
			work := c.Memory.Work(ctx)
			guard := jsonpatch.Guard{Step: work.Step, Reserve: c.Memory.Reserve()}
			var converted convert.Converted
			err := bounds.Heavily(&work, c.Memory.Heavy(), func() (err error) {
				converted, err = objects.RequestGuarded(guard, c.Request, to)
				return err
			})
			if err != nil {
				return extension.Result{Inconclusive: work.Waited()}, err
			}
			if converted.Message != c.Request {
				c.Request, c.Body = converted.Message, nil
			}
			result, err := next(ctx, c)
			result.Lost = slices.Concat(converted.Losses, result.Lost)
			if err != nil {
				return result, err
			}
			var response proto.Message
			var lost []string
			err = bounds.Heavily(&work, c.Memory.Heavy() || result.Received > budget.Step, func() (err error) {
				response, lost, err = converted.Response(result.Response)
				return err
			})
			result.Inconclusive = work.Waited()
			result.Response, result.Lost = response, append(result.Lost, lost...)
			return result, err
		}
	}
}
