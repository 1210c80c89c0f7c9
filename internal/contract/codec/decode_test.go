// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestDecode(t *testing.T) {
	raw := func(s string) *hooksv1alpha1.RawExtension { return &hooksv1alpha1.RawExtension{Raw: []byte(s)} }
	free := func(s string) *hooksv1alpha1.JSON { return &hooksv1alpha1.JSON{Raw: []byte(s)} }
	cases := map[string]struct {
		reason string
		body   string
		want   proto.Message
	}{
		"Empty": {
			reason: "kind and apiVersion may be absent: Cluster API's own server answers without them",
			body:   `{}`,
			want:   &hooksv1alpha1.DiscoveryRequest{},
		},
		"EmptyTypeMeta": {
			reason: "empty and null kind and apiVersion count as absent",
			body:   `{"kind":"","apiVersion":null}`,
			want:   &hooksv1alpha1.DiscoveryRequest{},
		},
		"WhiteSpace": {
			reason: "white space is allowed between all tokens, and kept within raw objects",
			body:   " \r\n\t{ \"cluster\" : { \"a\" :                    [ 1 , 2 ] } , \"settings\" : { \"k\" : \"v\" } } \n",
			want: &hooksv1alpha1.BeforeClusterCreateRequest{
				Cluster:  raw("{ \"a\" :                    [ 1 , 2 ] }"),
				Settings: map[string]string{"k": "v"},
			},
		},
		"RawIsVerbatim": {
			reason: "nothing within a raw object is interpreted: escapes, digits, duplicates, order, half surrogates",
			body:   `{"cluster":{"b":"\u003c\/\ud800","a":12345678901234567890.10e+1,"a":null}}`,
			want:   &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(`{"b":"\u003c\/\ud800","a":12345678901234567890.10e+1,"a":null}`)},
		},
		"RawOfAnyType": {
			reason: "a RawExtension need not hold an object",
			body:   `{"cluster":"text"}`,
			want:   &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(`"text"`)},
		},
		"Nulls": {
			reason: "an explicit null is the same as an absent member",
			body:   `{"status":null,"message":null,"handlers":null}`,
			want:   &hooksv1alpha1.DiscoveryResponse{},
		},
		"NullObjects": {
			reason: "also for objects, raw objects, maps, bytes, and optional scalars",
			body:   `{"settings":null,"current":null,"desired":{"machine":null}}`,
			want:   &hooksv1alpha1.CanUpdateMachineRequest{Desired: &hooksv1alpha1.CanUpdateMachineRequestObjects{}},
		},
		"NullList": {
			reason: "the null of a list that is always written is remembered",
			body:   `{"items":null}`,
			want:   &hooksv1alpha1.GeneratePatchesRequest{UnknownMembers: map[string]*hooksv1alpha1.JSON{"items": free("null")}},
		},
		"NullInMap": {
			reason: "a null in a map of strings is an empty string, as for encoding/json",
			body:   `{"settings":{"a":null}}`,
			want:   &hooksv1alpha1.DiscoverVariablesRequest{Settings: map[string]string{"a": ""}},
		},
		"Handler": {
			reason: "handler is a path segment in REST; in a body it is just an unknown member",
			body:   `{"handler":"h","unknownMembers":{"a":1}}`,
			want: &hooksv1alpha1.DiscoverVariablesRequest{
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"handler": free(`"h"`),
					"unknownMembers": free(`{"a":1}`)},
			},
		},
		"Case": {
			reason: "names of answers match in any case, and keys of maps do not",
			body: `{"MESSAGE":"a","Variables":[{"NAME":"v","deprecatedV1beta1metadata":{"Labels":{"a":"1","A":"2"}},` +
				`"\u017fchema":{"OpenAPIv3Schema":{"Type":"object","PROPERTIES":{"a":{"tYPE":"string"},"A":{"default":{"x":1,"X":2}}}}}}]}`,
			want: &hooksv1alpha1.DiscoverVariablesResponse{Message: "a", Variables: []*hooksv1alpha1.ClusterClassVariable{{
				Name:                      "v",
				DeprecatedV1Beta1Metadata: &hooksv1alpha1.ClusterClassVariableMetadata{Labels: map[string]string{"a": "1", "A": "2"}},
				Schema: &hooksv1alpha1.VariableSchema{OpenApiV3Schema: free(
					`{"type":"object","properties":{"a":{"type":"string"},"A":{"default":{"x":1,"X":2}}}}`)},
			}}},
		},
		"EscapedNames": {
			reason: "names and texts may be escaped in any way",
			body:   `{"\u0073\u0065ttings":{"a\tb":"\ud83d\ude00\"\\\/\b\f\n\r\u00e9"}}`,
			want:   &hooksv1alpha1.DiscoverVariablesRequest{Settings: map[string]string{"a\tb": "😀\"\\/\b\f\n\ré"}},
		},
		"AnyOrder": {
			reason: "members come in any order",
			body:   `{"message":"m","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success","kind":"ValidateTopologyResponse"}`,
			want: &hooksv1alpha1.ValidateTopologyResponse{Message: "m",
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS},
		},
		"Scalars": {
			reason: "optional scalars distinguish absent from zero",
			body: `{"handlers":[{"name":"a","requestHook":{"apiVersion":"g/v","hook":"H"},"timeoutSeconds":0,"failurePolicy":"Ignore"},` +
				`{"name":"b","timeoutSeconds":-2147483648}]}`,
			want: &hooksv1alpha1.DiscoveryResponse{Handlers: []*hooksv1alpha1.ExtensionHandler{{
				Name: "a", RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "g/v", Hook: "H"},
				TimeoutSeconds: proto.Int32(0), FailurePolicy: hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE,
			}, {Name: "b", TimeoutSeconds: proto.Int32(-2147483648)}}},
		},
		"Patches": {
			reason: "bytes are base64; null and empty differ where the member is always written",
			body:   `{"items":[{"uid":"1","patch":"W10="},{"uid":"2","patch":""},{"uid":"3","patch":null}]}`,
			want: &hooksv1alpha1.GeneratePatchesResponse{Items: []*hooksv1alpha1.GeneratePatchesResponseItem{
				{Uid: "1", Patch: []byte("[]")}, {Uid: "2", Patch: []byte{}}, {Uid: "3"},
			}},
		},
		"Variables": {
			reason: "schemas and values are raw",
			body:   `{"variables":[{"name":"v","required":false,"schema":{"openAPIV3Schema":{"type":"string"},"new":[]}}]}`,
			want: &hooksv1alpha1.DiscoverVariablesResponse{Variables: []*hooksv1alpha1.ClusterClassVariable{{
				Name: "v", Required: new(false), Schema: &hooksv1alpha1.VariableSchema{
					OpenApiV3Schema: free(`{"type":"string"}`), UnknownMembers: map[string]*hooksv1alpha1.JSON{"new": free("[]")},
				},
			}}},
		},
		"EmptyContainers": {
			reason: "empty lists and maps are empty, and not remembered",
			body:   `{"items":[],"variables":[],"settings":{},"":{}}`,
			want: &hooksv1alpha1.GeneratePatchesRequest{
				Settings: map[string]string{}, UnknownMembers: map[string]*hooksv1alpha1.JSON{"": free("{}")},
			},
		},
		"NullOptionalList": {
			reason: "the null of a list that may be absent is as good as absent",
			body:   `{"items":[{"variables":null}],"variables":null}`,
			want:   &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{}}},
		},
		"UnknownNull": {
			reason: "the null of a member that the schema does not know stays",
			body:   `{"new":null,"items":[{"new":null}]}`,
			want: &hooksv1alpha1.GeneratePatchesRequest{
				Items: []*hooksv1alpha1.GeneratePatchesRequestItem{
					{UnknownMembers: map[string]*hooksv1alpha1.JSON{"new": free("null")}},
				},
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"new": free("null")},
			},
		},
		"SurrogatePairs": {
			reason: "pairs at the beginning, next to each other, and at the end of a string",
			body:   `{"settings":{"\ud83d\ude00":"\ud83d\ude00\uD83D\uDE00x\ud800\udc00","\udbff\udfff":"\uffff\ud7ff\ue000"}}`,
			want: &hooksv1alpha1.DiscoverVariablesRequest{Settings: map[string]string{
				"😀": "😀😀x\U00010000", "\U0010ffff": "\uffff\uD7FF\ue000",
			}},
		},
		"DeepButAllowed": {
			reason: "nesting up to the limit, the envelope included",
			body: `{"cluster":` + strings.Repeat("[", limits.JSONDepth-1) + strings.Repeat("]",
				limits.JSONDepth-1) + `}`,
			want: &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(strings.Repeat("[",
				limits.JSONDepth-1) + strings.Repeat("]", limits.JSONDepth-1))},
		},
	}
	c := New(catalog.New())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.want.ProtoReflect().New().Interface()
			if err := c.Decode([]byte(tc.body), got); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	create := &hooksv1alpha1.BeforeClusterCreateRequest{}
	patches := &hooksv1alpha1.GeneratePatchesRequest{}
	answer := &hooksv1alpha1.GeneratePatchesResponse{}
	discovery := &hooksv1alpha1.DiscoveryResponse{}
	variables := &hooksv1alpha1.DiscoverVariablesResponse{}
	cases := map[string]struct {
		body string
		into proto.Message
		want Error
	}{
		"Nothing":          {``, create, Error{"", 0, "JSON ends early at byte 0"}},
		"OnlySpace":        {" \n", create, Error{"", 2, "JSON ends early at byte 2"}},
		"NotJSON":          {`<html>`, create, Error{"", 0, "invalid JSON at byte 0: unexpected '<', want a value"}},
		"NotAnObject":      {`[]`, create, Error{"", 0, "want a JSON object, got an array"}},
		"NullBody":         {`null`, create, Error{"", 0, "want a JSON object, got null"}},
		"EndsInObject":     {`{"cluster":{"a":1}`, create, Error{"", 18, "JSON ends early at byte 18"}},
		"EndsAfterName":    {`{"cluster"`, create, Error{"", 10, "JSON ends early at byte 10"}},
		"EndsAfterColon":   {`{"cluster":`, create, Error{"", 11, "JSON ends early at byte 11"}},
		"EndsInRawString":  {`{"cluster":{"a":"text`, create, Error{"", 21, "JSON ends early at byte 21"}},
		"EndsInEscape":     {`{"cluster":"\u12`, create, Error{"", 16, "JSON ends early at byte 16"}},
		"EndsInLiteral":    {`{"cluster":tru`, create, Error{"", 14, "JSON ends early at byte 14"}},
		"EndsInNumber":     {`{"cluster":-`, create, Error{"", 12, "JSON ends early at byte 12"}},
		"EndsInList":       {`{"items":[`, patches, Error{"", 10, "JSON ends early at byte 10"}},
		"EndsAfterElement": {`{"items":[{}`, patches, Error{"", 12, "JSON ends early at byte 12"}},
		"EndsAfterComma":   {`{"items":[{},`, patches, Error{"", 13, "JSON ends early at byte 13"}},
		"TextAfter": {`{}x`, create,
			Error{"", 2, "invalid JSON at byte 2: unexpected 'x', want nothing after the value"}},
		"NulAfter": {"{} \x00", create,
			Error{"", 3, "invalid JSON at byte 3: unexpected byte 0x00, want nothing after the value"}},
		"BraceAfter": {`{}}`, create,
			Error{"", 2, "invalid JSON at byte 2: unexpected '}', want nothing after the value"}},
		"TwoValues": {`{} {}`, create,
			Error{"", 3, "invalid JSON at byte 3: unexpected '{', want nothing after the value"}},
		"TrailingComma": {`{"cluster":1,}`, create,
			Error{"", 13, "invalid JSON at byte 13: unexpected '}', want a member name"}},
		"TrailingCommaRaw": {`{"cluster":[1,]}`, create,
			Error{"", 14, "invalid JSON at byte 14: unexpected ']', want a value"}},
		"MissingColon": {`{"cluster" 1}`, create,
			Error{"", 11, "invalid JSON at byte 11: unexpected '1', want ':'"}},
		"MissingComma": {`{"cluster":{"a":1 "b":2}}`, create,
			Error{"", 18, "invalid JSON at byte 18: unexpected '\"', want ',' or '}'"}},
		"WrongCloser": {`{"cluster":[1}}`, create,
			Error{"", 13, "invalid JSON at byte 13: unexpected '}', want ',' or ']'"}},
		"LeadingZero": {`{"cluster":01}`, create,
			Error{"", 12, "invalid JSON at byte 12: unexpected '1', want no digit after a leading 0"}},
		"BareDot": {`{"cluster":1.}`, create,
			Error{"", 13, "invalid JSON at byte 13: unexpected '}', want a digit"}},
		"BareExponent": {`{"cluster":1e+}`, create,
			Error{"", 14, "invalid JSON at byte 14: unexpected '}', want a digit"}},
		"Literal": {`{"cluster":nul1}`, create,
			Error{"", 14, "invalid JSON at byte 14: unexpected '1', want null"}},
		"ControlCharacter": {"{\"cluster\":\"a\nb\"}", create, Error{"", 13,
			"invalid JSON at byte 13: unexpected byte 0x0a, want an escape sequence for a control character"}},
		"Escape": {`{"cluster":"\x41"}`, create,
			Error{"", 13, "invalid JSON at byte 13: unexpected 'x', want an escape sequence"}},
		"HexDigits": {`{"cluster":"\u12g4"}`, create,
			Error{"", 16, "invalid JSON at byte 16: unexpected 'g', want a hexadecimal digit"}},
		"NotUTF8": {"{\"cluster\":\"a\xff\"}", create, Error{"", 13, "invalid JSON at byte 13: not UTF-8"}},
		"OverlongUTF8": {"{\"message\":\"\xc0\xaf\"}", answer,
			Error{"", 12, "invalid JSON at byte 12: not UTF-8"}},
		"BOM": {"\ufeff{}", create,
			Error{"", 0, "invalid JSON at byte 0: unexpected byte 0xef, want a value"}},
		"NotUTF8Name":    {"{\"\xff\":1}", create, Error{"", 2, "invalid JSON at byte 2: not UTF-8"}},
		"NotUTF8Escaped": {"{\"message\":\"\\n\xff\"}", answer, Error{"", 14, "invalid JSON at byte 14: not UTF-8"}},
		"CESU8": {"{\"message\":\"\xed\xa0\xbd\"}", answer,
			Error{"", 12, "invalid JSON at byte 12: not UTF-8"}},
		"HalfInName": {`{"\ud83d":1}`, create,
			Error{"", 1, "invalid JSON at byte 1: string with half of a surrogate pair"}},
		"HalfInKey": {`{"settings":{"\ude00":"a"}}`, create,
			Error{"", 13, "invalid JSON at byte 13: string with half of a surrogate pair"}},
		"HalfInSetting": {`{"settings":{"a":"\ude00"}}`, create,
			Error{"", 17, "invalid JSON at byte 17: string with half of a surrogate pair"}},
		"HalfThenEscape": {`{"message":"\ud83d\n00000"}`, answer,
			Error{"", 11, "invalid JSON at byte 11: string with half of a surrogate pair"}},
		"HalfThenHalf": {`{"message":"\ud83d\ud83d"}`, answer,
			Error{"", 11, "invalid JSON at byte 11: string with half of a surrogate pair"}},
		"HalfThenBackslash": {`{"message":"\ud83d\\ude00"}`, answer,
			Error{"", 11, "invalid JSON at byte 11: string with half of a surrogate pair"}},
		"HalfSurrogate": {`{"message":"\ud83d"}`, answer,
			Error{"", 11, "invalid JSON at byte 11: string with half of a surrogate pair"}},
		"SurrogateThenText": {`{"message":"\ud83dabcdef"}`, answer,
			Error{"", 11, "invalid JSON at byte 11: string with half of a surrogate pair"}},
		"SwappedSurrogates": {`{"message":"\ude00\ud83d"}`, answer,
			Error{"", 11, "invalid JSON at byte 11: string with half of a surrogate pair"}},
		"TooDeep": {`{"cluster":` + strings.Repeat("[", limits.JSONDepth), create,
			Error{"", 1010, "invalid JSON at byte 1010: nested deeper than 1000"}},
		"TooDeepUnknown": {`{"new":` + strings.Repeat(`{"a":`, limits.JSONDepth), create,
			Error{"", 5002, "invalid JSON at byte 5002: nested deeper than 1000"}},

		"WrongKind": {`{"kind":"BeforeClusterDeleteRequest"}`, create,
			Error{"kind", 8, "want BeforeClusterCreateRequest, got BeforeClusterDeleteRequest"}},
		"StrangeKind": {`{"kind":"a \"b\""}`, create,
			Error{"kind", 8, `want BeforeClusterCreateRequest, got "a \"b\""`}},
		"LongKind": {`{"kind":"` + strings.Repeat("k", 1000) + `"}`, create,
			Error{"kind", 8, `want BeforeClusterCreateRequest, got "` + strings.Repeat("k", 64) + `"…`}},
		"KindType": {`{"kind":1}`, create, Error{"kind", 8, "want a string, got a number"}},
		"WrongGroup": {`{"apiVersion":"v1"}`, create,
			Error{"apiVersion", 14, "want hooks.runtime.cluster.x-k8s.io/v1alpha1, got v1"}},
		"TwiceKind": {`{"kind":"","kind":""}`, create, Error{"kind", 18, "occurs twice in one object"}},
		"Twice":     {`{"cluster":1,"cluster":2}`, create, Error{"cluster", 23, "occurs twice in one object"}},
		"TwiceNull": {`{"cluster":null,"\u0063luster":null}`, create,
			Error{"cluster", 31, "occurs twice in one object"}},
		"TwiceNew": {`{"items":[{"new":1,"new":1}]}`, patches,
			Error{"items[0].new", 25, "occurs twice in one object"}},
		"TwiceEmpty": {`{"":1,"":1}`, patches, Error{`""`, 9, "occurs twice in one object"}},
		"TwiceInMap": {`{"settings":{"a.b":"1","a.b":"2"}}`, create,
			Error{`settings["a.b"]`, 29, "occurs twice in one object"}},
		"MapType":  {`{"settings":[]}`, create, Error{"settings", 12, "want an object, got an array"}},
		"MapValue": {`{"settings":{"a":1}}`, create, Error{`settings["a"]`, 17, "want a string, got a number"}},
		"ListType": {`{"items":{}}`, patches, Error{"items", 9, "want an array, got an object"}},
		"NullElement": {`{"items":[{},null]}`, &hooksv1alpha1.ValidateTopologyRequest{},
			Error{"items[1]", 13, "want an object, got null"}},
		"ElementType": {`{"items":[{"variables":[{},"a"]}]}`, patches,
			Error{"items[0].variables[1]", 27, "want an object, got a string"}},
		"StringType": {`{"items":[{},{},{},{"holderReference":{"name":7}}]}`, patches,
			Error{"items[3].holderReference.name", 46, "want a string, got a number"}},
		"ObjectType": {`{"items":[{"holderReference":true}]}`, patches,
			Error{"items[0].holderReference", 29, "want an object, got a boolean"}},
		"MemberGarbage": {`{"items":[{"holderReference":?}]}`, patches,
			Error{"", 29, "invalid JSON at byte 29: unexpected '?', want a value"}},
		"Enum": {`{"status":"Maybe"}`, answer,
			Error{"status", 10, `want "Success" or "Failure", got "Maybe"`}},
		"EnumCase": {`{"status":"success"}`, answer,
			Error{"status", 10, `want "Success" or "Failure", got "success"`}},
		"EnumType": {`{"status":1}`, answer, Error{"status", 10, "want a string, got a number"}},
		"EnumInItem": {`{"items":[{"patchType":"XML"}]}`, answer,
			Error{"items[0].patchType", 23, `want "JSONPatch" or "JSONMergePatch", got "XML"`}},
		"Base64": {`{"items":[{"patch":"?"}]}`, answer, Error{"items[0].patch", 19, "is not base64"}},
		"Base64Type": {`{"items":[{"patch":[]}]}`, answer,
			Error{"items[0].patch", 19, "want a string of base64, got an array"}},
		"IntType": {`{"handlers":[{"timeoutSeconds":"10"}]}`, discovery,
			Error{"handlers[0].timeoutSeconds", 31, "want an integer, got a string"}},
		"IntFraction": {`{"handlers":[{"timeoutSeconds":1.5}]}`, discovery,
			Error{"handlers[0].timeoutSeconds", 31, "want an integer from -2147483648 to 2147483647, got 1.5"}},
		"IntExponent": {`{"retryAfterSeconds":1e1}`, &hooksv1alpha1.UpdateMachineResponse{},
			Error{"retryAfterSeconds", 21, "want an integer from -2147483648 to 2147483647, got 1e1"}},
		"IntRange": {`{"retryAfterSeconds":2147483648}`, &hooksv1alpha1.UpdateMachineResponse{},
			Error{"retryAfterSeconds", 21, "want an integer from -2147483648 to 2147483647, got 2147483648"}},
		"BoolType": {`{"variables":[{"required":"true"}]}`, variables,
			Error{"variables[0].required", 26, "want true or false, got a string"}},
		"LabelType": {`{"variables":[{"deprecatedV1Beta1Metadata":{"labels":{"a":{}}}}]}`, variables,
			Error{`variables[0].deprecatedV1Beta1Metadata.labels["a"]`, 58, "want a string, got an object"}},
	}
	c := New(catalog.New())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.Decode([]byte(tc.body), tc.into.ProtoReflect().New().Interface())
			var got *Error
			if !errors.As(err, &got) {
				t.Fatalf("Decode(%.100s): got error %v, want %v", tc.body, err, &tc.want)
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("Decode(%.100s) (-want +got):\n%s", tc.body, diff)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	e := &Error{Path: "items[3].uid", Offset: 7, Message: "want a string, got a number"}
	if got, want := e.Error(), "items[3].uid: want a string, got a number"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e = &Error{Offset: 4096, Message: "JSON ends early at byte 4096"}
	if got, want := e.Error(), "JSON ends early at byte 4096"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOtherMessages(t *testing.T) {
	c := New(catalog.New())
	for _, none := range []proto.Message{nil, (*hooksv1alpha1.DiscoveryRequest)(nil)} {
		if err := c.Decode([]byte("{}"), none); err == nil {
			t.Errorf("Decode into %T(nil): no error", none)
		}
	}
	m := &hooksv1alpha1.RawExtension{}
	const want = "message *hooksv1alpha1.RawExtension is not in the catalog"
	if err := c.Decode([]byte("{}"), m); err == nil || err.Error() != want {
		t.Errorf("Decode: got %v, want %s", err, want)
	}
	if _, err := c.Encode(m); err == nil || err.Error() != want {
		t.Errorf("Encode: got %v, want %s", err, want)
	}
	if _, err := c.Append(nil, m); err == nil || err.Error() != want {
		t.Errorf("Append: got %v, want %s", err, want)
	}
	if err := c.Check(m); err == nil || err.Error() != want {
		t.Errorf("Check: got %v, want %s", err, want)
	}
}

// TestDeepInputIsCheap decodes input that would exhaust the stack of a recursive reader.
func TestDeepInputIsCheap(t *testing.T) {
	c := New(catalog.New())
	body := []byte(`{"cluster":` + strings.Repeat("[", 20<<20))
	if err := c.Decode(body, &hooksv1alpha1.BeforeClusterCreateRequest{}); err == nil {
		t.Error("20 MiB of brackets were accepted")
	}
}
