// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// Status is the status of an answer. Its numbers are the same in every version of the contract.
type Status = protoreflect.EnumNumber

// The statuses. An Unspecified answer is an error, never a success.
const (
	Unspecified = Status(hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_UNSPECIFIED)
	Success     = Status(hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS)
	Failure     = Status(hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE)
)

// StatusOf returns the status of an answer of any version, and false if m is not an answer.
func StatusOf(m proto.Message) (Status, bool) {
	if r, ok := m.(interface {
		GetStatus() hooksv1alpha1.ResponseStatus
	}); ok {
		return Status(r.GetStatus()), true
	}
	r := m.ProtoReflect()
	field := r.Descriptor().Fields().ByName("status")
	if field == nil || field.Kind() != protoreflect.EnumKind {
		return Unspecified, false
	}
	return r.Get(field).Enum(), true
}

// noMessage is the text of a Failure that has none.
const noMessage = "answered Failure without a message"

// FailureOf returns the message of an answer, and reports whether its status is Failure. A Failure without a message
// gets a text that says so. Nil is no answer.
func FailureOf(m proto.Message) (message string, failed bool) {
	if m == nil {
		return "", false
	}
	status, _ := StatusOf(m)
	if message = MessageOf(m); status == Failure && strings.TrimSpace(message) == "" {
		message = noMessage
	}
	return message, status == Failure
}

// MessageOf returns the message of an answer, which explains its status to people.
func MessageOf(m proto.Message) string {
	r, ok := m.(interface{ GetMessage() string })
	if !ok {
		return ""
	}
	return r.GetMessage()
}

// ChangeMessage sets the message of an answer to what change makes of it. An answer without one stays as it is.
func ChangeMessage(m proto.Message, change func(message string) string) {
	message := MessageOf(m)
	if message == "" {
		return
	}
	if changed := change(message); changed != message {
		r := m.ProtoReflect()
		r.Set(r.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(changed))
	}
}

// SetStatus sets the status of an answer and, unless it is empty, its message.
func SetStatus(m proto.Message, status Status, message string) {
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	r.Set(fields.ByName("status"), protoreflect.ValueOfEnum(status))
	if message != "" {
		r.Set(fields.ByName("message"), protoreflect.ValueOfString(message))
	}
}

// NewAnswer returns an answer of the hook. retryAfterSeconds is for hooks that hold their callers, and left out of
// others.
func (h *Hook) NewAnswer(status Status, message string, retryAfterSeconds int32) proto.Message {
	m := h.Response.New()
	SetStatus(m.Interface(), status, message)
	if retry := m.Descriptor().Fields().ByName("retry_after_seconds"); retry != nil {
		m.Set(retry, protoreflect.ValueOfInt32(retryAfterSeconds))
	}
	return m.Interface()
}

// checkResponse returns an error unless a message has the fields of an answer: a message, and a status with the names
// and numbers of the contract.
func checkResponse(d protoreflect.MessageDescriptor) error {
	status, message := d.Fields().ByName("status"), d.Fields().ByName("message")
	if status == nil || status.Kind() != protoreflect.EnumKind ||
		message == nil || message.Kind() != protoreflect.StringKind {
		return fmt.Errorf("message %s: an answer must have an enum field \"status\" and a string field \"message\"",
			d.FullName())
	}
	want := hooksv1alpha1.ResponseStatus(0).Descriptor().Values()
	have := status.Enum().Values()
	for i := range want.Len() {
		if v := have.ByNumber(want.Get(i).Number()); v == nil || v.Name() != want.Get(i).Name() {
			return fmt.Errorf(
				"enum %s: has no value %s = %d", status.Enum().FullName(), want.Get(i).Name(), want.Get(i).Number(),
			)
		}
	}
	return nil
}
