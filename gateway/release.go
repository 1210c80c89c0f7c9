// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/release"
	"github.com/hookgate/hookgate/internal/network/budget"
)

// reduceRequest takes out of requests what releases of Cluster API have added since the one whose requests the handler
// understands, and carries its answer over to what the caller sent. Calls without such a release pass unchanged, body
// included.
//
// Its errors are of kind InvalidRequest or TooLarge for an object of the request, and BadResponse for an answer whose
// change cannot be made to the whole object.
func reduceRequest(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		of := c.Handler.Handler.ClusterAPIRelease
		if !release.Concerns(of, c.Hook.Hook) || c.Hook.Group != hook.Group || c.Request == nil {
			return next(ctx, c)
		}
		work := c.Memory.Work(ctx)
		guard := jsonpatch.Guard{Step: work.Step, Reserve: c.Memory.Reserve()}
		var reduced release.Reduced
		err := bounds.Heavily(&work, c.Memory.Heavy(), func() (err error) {
			reduced, err = release.Request(guard, of, c.Hook.Hook, c.Request)
			return err
		})
		if err != nil {
			return extension.Result{Inconclusive: work.Waited()}, err
		}
		if reduced.Message != c.Request {
			c.Request, c.Body = reduced.Message, nil
		}
		result, err := next(ctx, c)
		result.Lost = slices.Concat(reduced.Lost, result.Lost)
		if err != nil {
			return result, err
		}
		err = bounds.Heavily(&work, c.Memory.Heavy() || result.Received > budget.Step, func() (err error) {
			result.Response, err = reduced.Response(result.Response)
			return err
		})
		result.Inconclusive = work.Waited()
		return result, err
	}
}
