// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/extension"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
)

// response is a response of any hook, whatever its version.
type response interface {
	proto.Message
	GetMessage() string
}

// blockingResponse is a response that may hold its caller.
type blockingResponse interface {
	response
	GetRetryAfterSeconds() int32
}

// newResponse returns a response of the hook.
func newResponse(h *catalog.Hook, status catalog.Status, message string) response {
	m := h.Response.New().Interface()
	catalog.SetStatus(m, status, message)
	r, _ := m.(response)
	return r
}

func newSuccess(h *catalog.Hook) response {
	return newResponse(h, catalog.Success, "")
}

func newFailure(h *catalog.Hook, message string) response {
	return newResponse(h, catalog.Failure, message)
}

// setRetryAfterSeconds sets retryAfterSeconds of a response of a blocking hook.
func setRetryAfterSeconds(m proto.Message, seconds int32) {
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName("retry_after_seconds"), protoreflect.ValueOfInt32(seconds))
}

// boundMessage cuts the message of an answer to what a condition has room for, and masks secrets in it, because callers
// show it to all who may read their objects. The rest of the answer stays as it is.
func boundMessage(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		r, ok := result.Response.(response)
		if err != nil || !ok || r.GetMessage() == "" {
			return result, err
		}
		if bounded := text.Bounded(r.GetMessage(), limits.MessageBytes); bounded != r.GetMessage() {
			m := r.ProtoReflect()
			m.Set(m.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(bounded))
		}
		return result, nil
	}
}
