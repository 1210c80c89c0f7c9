// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// Status is the status of an answer: the numbers that it has in every version of the contract.
type Status = protoreflect.EnumNumber

// The statuses. An answer without one is an error, never a success.
const (
	Unspecified = Status(hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_UNSPECIFIED)
	Success     = Status(hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS)
	Failure     = Status(hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE)
)

// StatusOf returns the status of an answer of any version; false if m is no answer.
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

// MessageOf returns the message of an answer, which explains its status to a person.
func MessageOf(m proto.Message) string {
	r, ok := m.(interface{ GetMessage() string })
	if !ok {
		return ""
	}
	return r.GetMessage()
}

// SetStatus sets status and message of an answer of a hook.
func SetStatus(m proto.Message, status Status, message string) {
	r := m.ProtoReflect()
	fields := r.Descriptor().Fields()
	r.Set(fields.ByName("status"), protoreflect.ValueOfEnum(status))
	if message != "" {
		r.Set(fields.ByName("message"), protoreflect.ValueOfString(message))
	}
}

// checkResponse tells what keeps a message from being an answer: status, with values of its names and numbers, and message.
func checkResponse(d protoreflect.MessageDescriptor) error {
	status, message := d.Fields().ByName("status"), d.Fields().ByName("message")
	if status == nil || status.Kind() != protoreflect.EnumKind || message == nil || message.Kind() != protoreflect.StringKind {
		return fmt.Errorf("message %s: an answer has an enum status and a string message", d.FullName())
	}
	want := hooksv1alpha1.ResponseStatus(0).Descriptor().Values()
	have := status.Enum().Values()
	for i := range want.Len() {
		if v := have.ByNumber(want.Get(i).Number()); v == nil || v.Name() != want.Get(i).Name() {
			return fmt.Errorf("enum %s: has no value %s = %d", status.Enum().FullName(), want.Get(i).Name(), want.Get(i).Number())
		}
	}
	return nil
}
