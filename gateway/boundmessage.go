// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// boundMessage cuts the message of an answer to what a condition has room for, and masks secrets in it, because callers
// show it to all who may read their objects. The rest of the answer stays as it is.
func boundMessage(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		r, ok := result.Response.(outcome.Response)
		if err != nil || !ok || r.GetMessage() == "" {
			return result, err
		}
		if bounded := redact.Bounded(r.GetMessage(), limits.MessageBytes); bounded != r.GetMessage() {
			m := r.ProtoReflect()
			m.Set(m.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(bounded))
		}
		return result, nil
	}
}
