// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
)

// hookVersion converts requests to the version of the hook that the handler implements, and responses back to the
// caller's version. Handlers are looked up by group and name of the hook, so the two can differ. A call that needs no
// conversion passes unchanged, body included.
//
// The links after it see a call of the handler's version. Its errors are of kind Conversion and name both versions.
func hookVersion(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		implemented := c.Handler.Handler.Hook
		to, ok := c.Hook.In(implemented.Version)
		if !ok {
			return extension.Result{}, hook.Errorf(hook.Conversion,
				"convert request: the handler implements %s, which the gateway does not serve: it has to implement %s",
				implemented, c.Hook.Hub())
		}
		if to == c.Hook {
			return next(ctx, c)
		}
		request, lost, err := c.Hook.ConvertRequest(c.Request, to)
		if err != nil {
			return extension.Result{}, err
		}
		result, err := next(ctx, extension.Call{Hook: to, Handler: c.Handler, Request: request})
		result.Lost = slices.Concat(lost, result.Lost)
		if err != nil {
			return result, err
		}
		result.Response, lost, err = to.ConvertResponse(result.Response, c.Hook)
		result.Lost = append(result.Lost, lost...)
		return result, err
	}
}

// inHub returns the message of r in the newest version of its hook, in which selectors and conditions of policies read
// it, so that they mean the same whatever version the caller uses.
func inHub(r Request) (proto.Message, error) {
	if r.Hook == r.Hook.Hub() {
		return r.Message, nil
	}
	converted, _, err := r.Hook.ConvertRequest(r.Message, r.Hook.Hub())
	return converted, err
}
