// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// response is what every answer has.
type response interface {
	proto.Message
	GetStatus() hooksv1alpha1.ResponseStatus
	GetMessage() string
}

// blockingResponse is an answer that may hold its caller.
type blockingResponse interface {
	response
	GetRetryAfterSeconds() int32
}

// newResponse returns an answer of the hook with that status and message.
func newResponse(h *catalog.Hook, status hooksv1alpha1.ResponseStatus, message string) response {
	m := h.Response.New()
	fields := h.Response.Descriptor().Fields()
	m.Set(fields.ByName("status"), protoreflect.ValueOfEnum(status.Number()))
	if message != "" {
		m.Set(fields.ByName("message"), protoreflect.ValueOfString(message))
	}
	r, _ := m.Interface().(response)
	return r
}

func newSuccess(h *catalog.Hook) response {
	return newResponse(h, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, "")
}

func newFailure(h *catalog.Hook, message string) response {
	return newResponse(h, hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, message)
}

func failed(m proto.Message) (response, bool) {
	r, ok := m.(response)
	return r, ok && r.GetStatus() == hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
}

// setRetryAfterSeconds sets the member on an answer of a blocking hook.
func setRetryAfterSeconds(m proto.Message, seconds int32) {
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName("retry_after_seconds"), protoreflect.ValueOfInt32(seconds))
}
