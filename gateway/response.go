// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
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

// failed returns m as a response, and reports whether its status is Failure.
func failed(m proto.Message) (response, bool) {
	r, ok := m.(response)
	if !ok {
		return nil, false
	}
	status, _ := catalog.StatusOf(m)
	return r, status == catalog.Failure
}

// setRetryAfterSeconds sets retryAfterSeconds of a response of a blocking hook.
func setRetryAfterSeconds(m proto.Message, seconds int32) {
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName("retry_after_seconds"), protoreflect.ValueOfInt32(seconds))
}
