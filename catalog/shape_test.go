// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

// shaped is a hook with a field of every form, of which each test changes something.
const shaped = `
name: "t.proto" package: "t" syntax: "proto3" dependency: "hookgate/hooks/v1alpha1/common.proto"
service { name: "ThingHooksService" method { name: "Do" input_type: ".t.Q" output_type: ".t.A" } }
enum_type { name: "Size" value { name: "SIZE_UNSPECIFIED" number: 0 } value { name: "SIZE_BIG" number: 1 } }
message_type { name: "Q"
  field { name: "handler" number: 1 type: TYPE_STRING }
  field { name: "settings" number: 2 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".t.Q.SettingsEntry" }
  field { name: "number" number: 3 type: TYPE_INT32 }
  field { name: "flag" number: 4 type: TYPE_BOOL proto3_optional: true oneof_index: 0 }
  field { name: "size" number: 5 type: TYPE_ENUM type_name: ".t.Size" }
  field { name: "again" number: 6 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".t.Q" }
  field { name: "object" number: 7 type: TYPE_MESSAGE type_name: ".hookgate.hooks.v1alpha1.RawExtension" }
  field { name: "names" number: 8 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "data" number: 9 type: TYPE_BYTES }
  field { name: "unknown_members" number: 15 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".t.Q.UnknownMembersEntry" }
  oneof_decl { name: "_flag" }
  nested_type { name: "SettingsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING } field { name: "value" number: 2 type: TYPE_STRING } }
  nested_type { name: "UnknownMembersEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".hookgate.hooks.v1alpha1.JSON" } }
}
message_type { name: "A"
  field { name: "retry_after_seconds" number: 3 type: TYPE_INT32 }
  field { name: "unknown_members" number: 15 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".t.A.UnknownMembersEntry" }
  nested_type { name: "UnknownMembersEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".hookgate.hooks.v1alpha1.JSON" } }
}`

func TestCheckShape(t *testing.T) {
	const noForm = "field t.Q.number: the JSON of hooks cannot express its type"
	number := `name: "number" number: 3 type: TYPE_INT32`
	var many strings.Builder
	for i := range 21 { // and the nine of Q
		many.WriteString(`field { name: "m` + string(rune('a'+i)) + `" number: ` + string([]byte{'1', '0' + byte(i/10), '0' + byte(i%10)}) + ` type: TYPE_STRING } `)
	}
	for name, tt := range map[string]struct{ from, to, want string }{
		"EveryForm":        {"", "", ""},
		"Stream":           {`output_type: ".t.A"`, `output_type: ".t.A" server_streaming: true`, "the rpc is a stream: a hook has one request and one answer"},
		"StreamOfRequests": {`output_type: ".t.A"`, `output_type: ".t.A" client_streaming: true`, "the rpc is a stream: a hook has one request and one answer"},
		"NoHandler":        {`name: "handler"`, `name: "target"`, "message t.Q: a request must have the string field \"handler\""},
		"HandlerIsANumber": {`"handler" number: 1 type: TYPE_STRING`, `"handler" number: 1 type: TYPE_INT32`, "message t.Q: a request must have the string field \"handler\""},
		"SettingsAreAList": {`label: LABEL_REPEATED type_name: ".t.Q.SettingsEntry"`, `type_name: ".t.A"`, "field t.Q.settings: want map<string, string>"},
		"MapOfNumbers": {
			`"value" number: 2 type: TYPE_STRING`, `"value" number: 2 type: TYPE_INT32`,
			"field t.Q.settings: want map<string, string>\nfield t.Q.settings: the JSON of hooks cannot express its type",
		},
		"RetryIsText": {`"retry_after_seconds" number: 3 type: TYPE_INT32`, `"retry_after_seconds" number: 3 type: TYPE_STRING`, "field t.A.retry_after_seconds: want int32"},
		"NoUnknown": {
			`number: 2 type: TYPE_MESSAGE type_name: ".hookgate.hooks.v1alpha1.JSON"`, `number: 2 type: TYPE_STRING`,
			`message t.Q: has no field "map<string, hookgate.hooks.v1alpha1.JSON> unknown_members"`,
		},
		"Long":        {number, `name: "number" number: 3 type: TYPE_INT64`, noForm},
		"Double":      {number, `name: "number" number: 3 type: TYPE_DOUBLE`, noForm},
		"Numbers":     {number, number + ` label: LABEL_REPEATED`, noForm},
		"Oneof":       {number + " }", number + ` oneof_index: 0 } oneof_decl { name: "choice" }`, noForm},
		"MaybeText":   {number, `name: "number" number: 3 type: TYPE_STRING proto3_optional: true oneof_index: 0`, noForm},
		"Objects":     {number, `name: "number" number: 3 type: TYPE_MESSAGE label: LABEL_REPEATED type_name: ".hookgate.hooks.v1alpha1.RawExtension"`, noForm},
		"GapInEnum":   {`"SIZE_BIG" number: 1`, `"SIZE_BIG" number: 2`, "field t.Q.size: the JSON of hooks cannot express its type"},
		"OtherCase":   {number + " }", number + ` } field { name: "num_ber" number: 99 type: TYPE_STRING }`, "field t.Q.num_ber: its JSON name and the JSON name of number differ only in case"},
		"LongS":       {number + " }", number + ` } field { name: "other" number: 99 type: TYPE_STRING json_name: "ſettings" }`, "field t.Q.other: its JSON name and the JSON name of settings differ only in case"},
		"MostMembers": {`message_type { name: "Q"`, `message_type { name: "Q" ` + many.String(), ""},
		"MoreMembers": {`message_type { name: "Q"`, `message_type { name: "Q" ` + many.String() + ` field { name: "one_more" number: 99 type: TYPE_STRING }`, "message t.Q: has 31 members in JSON, more than 30: group them in messages"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(shaped, tt.from, tt.to, 1)
			switch name {
			case "Oneof":
				text = strings.Replace(text, `oneof_decl { name: "_flag" }`, "", 1)
				text = strings.Replace(text, ` proto3_optional: true oneof_index: 0`, "", 1)
			case "MaybeText":
				text = strings.Replace(text, `TYPE_BOOL proto3_optional: true oneof_index: 0`, `TYPE_BOOL`, 1)
			}
			file := &descriptorpb.FileDescriptorProto{}
			if err := prototext.Unmarshal([]byte(text), file); err != nil {
				t.Fatal(err)
			}
			d, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if err := checkShape(&Hook{Category: "ThingHooks"}, d.Services().Get(0).Methods().Get(0)); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A hook in a DiscoveryService lists handlers, and needs no handler in its request.
func TestCheckShapeOfDiscovery(t *testing.T) {
	discovery := &Hook{Category: Discovery}
	method := hooksv1alpha1.File_hookgate_hooks_v1alpha1_discovery_proto.Services().Get(0).Methods().Get(0)
	if err := checkShape(discovery, method); err != nil {
		t.Errorf("Discovery: %v", err)
	}
	method = infrastructurev1alpha1.File_hookgate_infrastructure_v1alpha1_machine_proto.Services().Get(0).Methods().Get(0)
	const want = "message hookgate.infrastructure.v1alpha1.ReconcileMachineResponse: the answer of a DiscoveryService must have the field " +
		`"repeated hookgate.hooks.v1alpha1.ExtensionHandler handlers"`
	if err := checkShape(discovery, method); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestCheckAPIVersion(t *testing.T) {
	for apiVersion, ok := range map[string]bool{
		"dns.acme.example/v1alpha1": true, "dns.acme.example/v2": true, "a/v1beta10": true, "a/v0alpha1": true,
		"Acme/v1": false, "acme_/v1": false, "/v1": false, "a/1": false, "a/v1alpha": false, "a/v1-x": false, "a/": false,
	} {
		group, version, _ := strings.Cut(apiVersion, "/")
		if err := checkAPIVersion(group, version); (err == nil) != ok {
			t.Errorf("%s: %v", apiVersion, err)
		}
	}
}
