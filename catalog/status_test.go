// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// enumValue is a value of the enum of a response's status.
type enumValue struct {
	name   string
	number int32
}

// TestCheckResponse checks that a response needs a message, and a status with the names and numbers of the contract.
func TestCheckResponse(t *testing.T) {
	contract := []enumValue{
		{"RESPONSE_STATUS_UNSPECIFIED", 0}, {"RESPONSE_STATUS_SUCCESS", 1}, {"RESPONSE_STATUS_FAILURE", 2},
	}
	text, number := descriptorpb.FieldDescriptorProto_TYPE_STRING, descriptorpb.FieldDescriptorProto_TYPE_INT32
	const members = `message test.Response: an answer must have an enum field "status" and a string field "message"`
	for name, tc := range map[string]struct {
		values  []enumValue
		message descriptorpb.FieldDescriptorProto_Type
		want    string
	}{
		"Contract": {contract, text, ""},
		"More":     {append(contract[:3:3], enumValue{"RESPONSE_STATUS_LATER", 3}), text, ""},
		"Missing":  {contract[:2], text, "enum test.Status: has no value RESPONSE_STATUS_FAILURE = 2"},
		"Renamed": {
			append(contract[:2:2], enumValue{"RESPONSE_STATUS_FAILED", 2}), text,
			"enum test.Status: has no value RESPONSE_STATUS_FAILURE = 2",
		},
		"Renumbered": {
			append(contract[:2:2], enumValue{"RESPONSE_STATUS_FAILURE", 3}), text,
			"enum test.Status: has no value RESPONSE_STATUS_FAILURE = 2",
		},
		"MessageIsANumber": {contract, number, members},
		"NoStatus":         {nil, text, members},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := checkResponse(response(t, tc.values, tc.message).Messages().ByName("Response")); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// response returns a file with a message Response. Without values, it has no status.
func response(
	t *testing.T, values []enumValue, message descriptorpb.FieldDescriptorProto_Type,
) protoreflect.FileDescriptor {
	t.Helper()
	r := &descriptorpb.DescriptorProto{Name: new("Response"), Field: []*descriptorpb.FieldDescriptorProto{
		{Name: new("message"), Number: new(int32(2)), Type: &message},
	}}
	file := &descriptorpb.FileDescriptorProto{
		Name: new("test.proto"), Package: new("test"), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{r},
	}
	if values != nil {
		status := &descriptorpb.EnumDescriptorProto{Name: new("Status")}
		for _, v := range values {
			status.Value = append(status.Value,
				&descriptorpb.EnumValueDescriptorProto{Name: new(v.name), Number: new(v.number)})
		}
		file.EnumType = append(file.EnumType, status)
		r.Field = append(r.Field, &descriptorpb.FieldDescriptorProto{
			Name: new("status"), Number: new(int32(1)), TypeName: new(".test.Status"),
			Type: descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum(),
		})
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
