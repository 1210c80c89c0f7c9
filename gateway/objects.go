// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/extension"
)

// ConvertObjects returns a Caller that brings the Cluster API objects in requests to the version that a handler understands,
// before next is called, and what is answered about them back to the caller's. Where nobody says what the handler understands,
// or it is what was sent, the call goes on as it is, body included.
//
// The error is a *hook.Error of kind Conversion if an object cannot be converted, InvalidRequest if it is none, and BadResponse if an
// answer does not fit the object.
func ConvertObjects(objects *convert.Objects, next Caller) Caller {
	return CallerFunc(func(ctx context.Context, c *extension.Call) (proto.Message, error) {
		to := c.Handler.Handler.ClusterAPIVersion
		if to == "" {
			return next.Call(ctx, c)
		}
		converted, err := objects.Request(c.Request, to)
		if err != nil {
			return nil, err
		}
		if converted.Message != c.Request {
			c.Request, c.Body = converted.Message, nil
		}
		c.Lost = append(c.Lost, converted.Losses...)
		response, err := next.Call(ctx, c)
		if err != nil {
			return nil, err
		}
		response, lost, err := converted.Response(response)
		if err != nil {
			return nil, err
		}
		c.Lost = append(c.Lost, lost...)
		return response, nil
	})
}
