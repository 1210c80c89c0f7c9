// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"path"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/hookgate/hookgate/hook"
)

// The service that Envoy's transcoder calls. It takes a Struct: the way to put any JSON into protobuf.
const (
	structPackage = "hookgate.bench"
	structService = "Hooks"
	structMethod  = "Call"
)

// transcoder returns the configuration of Envoy's filter from REST to gRPC, for all hooks and handlers.
func transcoder() (object, error) {
	set, err := structDescriptors()
	if err != nil {
		return nil, err
	}
	descriptors, err := proto.Marshal(set)
	if err != nil {
		return nil, err
	}
	return object{
		"@type":                           "type.googleapis.com/envoy.extensions.filters.http.grpc_json_transcoder.v3.GrpcJsonTranscoder",
		"proto_descriptor_bin":            base64.StdEncoding.EncodeToString(descriptors),
		"services":                        list{structPackage + "." + structService},
		"ignore_unknown_query_parameters": true, // ?timeout
		"max_request_body_size":           envoyBuffer,
		"convert_grpc_status":             true,
		"request_validation_options":      object{"reject_unknown_method": true},
		"print_options":                   object{"always_print_primitive_fields": true},
	}, nil
}

// structDescriptors returns this file and what it imports:
//
//	message Request { string hook = 1; string handler = 2; google.protobuf.Struct body = 3; }
//	message Answer { string status = 1; }
//	service Hooks { rpc Call(Request) returns (Answer) { post: "<group>/<version>/{hook}/{handler}" body: "body" } }
func structDescriptors() (*descriptorpb.FileDescriptorSet, error) {
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, message string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{
			Name: &name, Number: &number, Type: &kind, Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		if message != "" {
			f.TypeName = &message
		}
		return f
	}
	const (
		text = descriptorpb.FieldDescriptorProto_TYPE_STRING
		sub  = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	)
	options := &descriptorpb.MethodOptions{}
	proto.SetExtension(options, annotations.E_Http, &annotations.HttpRule{
		Pattern: &annotations.HttpRule_Post{
			Post: path.Dir(hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: hookS}.Path("")) + "/{hook}/{handler}",
		},
		Body: "body",
	})
	file := &descriptorpb.FileDescriptorProto{
		Name: new("hookgate/bench.proto"), Package: new(structPackage), Syntax: new("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: new("Request"), Field: []*descriptorpb.FieldDescriptorProto{
				field("hook", 1, text, ""), field("handler", 2, text, ""), field("body", 3, sub, ".google.protobuf.Struct"),
			}},
			{Name: new("Answer"), Field: []*descriptorpb.FieldDescriptorProto{field("status", 1, text, "")}},
		},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: new(structService),
			Method: []*descriptorpb.MethodDescriptorProto{{
				Name: new(structMethod), Options: options, InputType: new("." + structPackage + ".Request"),
				OutputType: new("." + structPackage + ".Answer"),
			}},
		}},
	}
	set := &descriptorpb.FileDescriptorSet{}
	seen := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	for _, f := range []protoreflect.FileDescriptor{structpb.File_google_protobuf_struct_proto, annotations.File_google_api_annotations_proto} {
		add(f)
		file.Dependency = append(file.Dependency, f.Path())
	}
	set.File = append(set.File, file)
	if _, err := protodesc.NewFiles(set); err != nil {
		return nil, fmt.Errorf("descriptors for Envoy: %w", err)
	}
	return set, nil
}

// transcoded is the size of the largest body that is put through Envoy's transcoder, which takes a second of CPU for the
// size L.
const transcoded = 1 << 20
