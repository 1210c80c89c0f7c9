// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/extension"
)

// Caller calls one handler. It returns a fresh message of the hook's response, or a *hook.Error: Unreachable, Timeout,
// BadResponse, Canceled, Conversion, Policy or Internal. Implementations are safe for concurrent use.
type Caller interface {
	Call(ctx context.Context, c *extension.Call) (proto.Message, error)
}

// CallerFunc makes a function a Caller.
type CallerFunc func(ctx context.Context, c *extension.Call) (proto.Message, error)

// Call calls f.
func (f CallerFunc) Call(ctx context.Context, c *extension.Call) (proto.Message, error) {
	return f(ctx, c)
}

var _ Caller = CallerFunc(nil)
