// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

const typeMetaOf = `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"`

func TestAppend(t *testing.T) {
	free := func(s string) *hooksv1alpha1.JSON { return &hooksv1alpha1.JSON{Raw: []byte(s)} }
	cases := map[string]struct {
		reason string
		msg    proto.Message
		want   string
	}{
		"EmptyRequest": {
			reason: "kind and apiVersion are always written",
			msg:    &hooksv1alpha1.DiscoveryRequest{},
			want:   `{"kind":"DiscoveryRequest",` + typeMetaOf + `}`,
		},
		"EmptyAnswer": {
			reason: "so are status and retryAfterSeconds",
			msg:    &hooksv1alpha1.BeforeClusterCreateResponse{},
			want:   `{"kind":"BeforeClusterCreateResponse",` + typeMetaOf + `,"status":"","retryAfterSeconds":0}`,
		},
		"EmptyMessageWithAStatus": {
			reason: "a status that is not that of the answer is left out, as all else in it",
			msg: &infrastructurev1alpha1.ReconcileMachineResponse{Conditions: []*infrastructurev1alpha1.Condition{
				{}, {Type: "DiskHealthy", Reason: "Unset"}, {Type: "DiskHealthy", Status: "False"},
			}},
			want: `{"kind":"ReconcileMachineResponse","apiVersion":"infrastructure.hookgate.dev/v1alpha1","status":"","retryAfterSeconds":0,` +
				`"conditions":[{},{"type":"DiskHealthy","reason":"Unset"},{"type":"DiskHealthy","status":"False"}]}`,
		},
		"EmptyLists": {
			reason: "an absent list that is always written is [], because null was not sent",
			msg:    &hooksv1alpha1.GeneratePatchesRequest{},
			want:   `{"kind":"GeneratePatchesRequest",` + typeMetaOf + `,"items":[]}`,
		},
		"NullList": {
			reason: "null comes back in the list's place, among unknown members or without",
			msg:    &hooksv1alpha1.GeneratePatchesRequest{UnknownMembers: map[string]*hooksv1alpha1.JSON{"items": free("null"), "a": free("1")}},
			want:   `{"kind":"GeneratePatchesRequest",` + typeMetaOf + `,"items":null,"a":1}`,
		},
		"NoLongerNull": {
			reason: "elements that were added to a null list win",
			msg: &hooksv1alpha1.GeneratePatchesRequest{
				Items:          []*hooksv1alpha1.GeneratePatchesRequestItem{{Uid: "1"}},
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"items": free("null")},
			},
			want: `{"kind":"GeneratePatchesRequest",` + typeMetaOf + `,"items":[{"uid":"1","holderReference":{"apiVersion":"","kind":"","namespace":"","name":"",` +
				`"fieldPath":""},"object":null}]}`,
		},
		"HandlerIsNoMember": {
			reason: "the handler is in the path",
			msg:    &hooksv1alpha1.AfterClusterUpgradeRequest{Handler: "h"},
			want:   `{"kind":"AfterClusterUpgradeRequest",` + typeMetaOf + `,"cluster":null,"kubernetesVersion":""}`,
		},
		"Verbatim": {
			reason: "raw objects and unknown members are never re-encoded; names of members are, and sorted",
			msg: &hooksv1alpha1.BeforeClusterDeleteRequest{
				Cluster: &hooksv1alpha1.RawExtension{Raw: []byte("{ \"b\" : \"<\\u003c&\u2028\", \"a\" : 1.00e0 }")},
				UnknownMembers: map[string]*hooksv1alpha1.JSON{"z<": free("[ 1 ,\n2 ]"), "": free(`"\/"`),
					"nil": nil, "empty": {}},
			},
			want: `{"kind":"BeforeClusterDeleteRequest",` + typeMetaOf + ",\"cluster\":{ \"b\" : \"<\\u003c&\u2028\", \"a\" : 1.00e0 }," +
				`"":"\/","empty":null,"nil":null,"z\u003c":[ 1 ,` + "\n2 ]}",
		},
		"EmptyRaw": {
			reason: "a raw object without text is an absent one",
			msg: &hooksv1alpha1.UpdateMachineRequest{
				Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: &hooksv1alpha1.RawExtension{}},
			},
			want: `{"kind":"UpdateMachineRequest",` + typeMetaOf + `,"desired":{}}`,
		},
		"NullRaw": {
			reason: "so is null, which is read as one, and only null: true is a text, if a wrong one",
			msg: &hooksv1alpha1.UpdateMachineRequest{
				Desired: &hooksv1alpha1.UpdateMachineRequestObjects{
					Machine:               &hooksv1alpha1.RawExtension{Raw: []byte("null")},
					BootstrapConfig:       &hooksv1alpha1.RawExtension{Raw: []byte(" \n\tnull\r ")},
					InfrastructureMachine: &hooksv1alpha1.RawExtension{Raw: []byte(" true")},
				},
			},
			want: `{"kind":"UpdateMachineRequest",` + typeMetaOf + `,"desired":{"infrastructureMachine": true}}`,
		},
		"Patches": {
			reason: "nil bytes are null, empty ones are not",
			msg: &hooksv1alpha1.GeneratePatchesResponse{Items: []*hooksv1alpha1.GeneratePatchesResponseItem{
				{}, {Patch: []byte{}}, {PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: []byte("[]")},
			}},
			want: `{"kind":"GeneratePatchesResponse",` + typeMetaOf + `,"status":"","items":[{"uid":"","patchType":"","patch":null},` +
				`{"uid":"","patchType":"","patch":""},{"uid":"","patchType":"JSONPatch","patch":"W10="}]}`,
		},
		"Handlers": {
			reason: "optional scalars are written when they are set",
			msg: &hooksv1alpha1.DiscoveryResponse{Handlers: []*hooksv1alpha1.ExtensionHandler{
				{}, {TimeoutSeconds: proto.Int32(0), FailurePolicy: hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL},
			}},
			want: `{"kind":"DiscoveryResponse",` + typeMetaOf + `,"status":"","handlers":[{"name":"","requestHook":{"apiVersion":"","hook":""}},` +
				`{"name":"","requestHook":{"apiVersion":"","hook":""},"timeoutSeconds":0,"failurePolicy":"Fail"}]}`,
		},
	}
	hooks, err := catalog.With(catalog.Infrastructure()...)
	if err != nil {
		t.Fatal(err)
	}
	c := New(hooks)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := c.Append([]byte("before "), tc.msg)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != "before "+tc.want {
				t.Errorf("%s:\ngot  %s\nwant before %s", tc.reason, got, tc.want)
			}
			if !json.Valid(got[len("before "):]) {
				t.Error("not JSON")
			}
			if err := c.Check(tc.msg); err != nil {
				t.Errorf("Check: %v", err)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	bad := func(s string) map[string]*hooksv1alpha1.JSON {
		return map[string]*hooksv1alpha1.JSON{"new": {Raw: []byte(s)}, "aaa": {Raw: []byte("1")}}
	}
	cases := map[string]struct {
		msg     proto.Message
		want    string
		encodes bool // Encode does not look into raw objects
	}{
		"Cluster": {
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"a":}`)}},
			"cluster: invalid JSON at byte 5: unexpected '}', want a value", true,
		},
		"Truncated": {
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"a":1`)}},
			"cluster: JSON ends early at byte 6", true,
		},
		"OnlySpace": {
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(` `)}},
			"cluster: JSON ends early at byte 1", true,
		},
		"Injection": {
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{},"settings":{}`)}},
			"cluster: invalid JSON at byte 2: unexpected ',', want nothing after the value", true,
		},
		"NotUTF8": {
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte("\"\xff\"")}},
			"cluster: invalid JSON at byte 1: not UTF-8", true,
		},
		"Value": {
			&hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{
				{}, {Variables: []*hooksv1alpha1.Variable{{Value: &hooksv1alpha1.JSON{Raw: []byte("01")}}}},
			}},
			"items[1].variables[0].value: invalid JSON at byte 1: unexpected '1', want no digit after a leading 0", true,
		},
		"Unknown": {
			&hooksv1alpha1.DiscoveryRequest{UnknownMembers: bad("nul")},
			`unknown_members["new"]: JSON ends early at byte 3`, true,
		},
		"UnknownDeeper": {
			&hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: &hooksv1alpha1.Patch{UnknownMembers: bad("{1}")}},
			`machinePatch.unknown_members["new"]: invalid JSON at byte 1: unexpected '1', want a member name`, true,
		},
		"UnknownIsKnown": {
			&hooksv1alpha1.DiscoveryResponse{UnknownMembers: map[string]*hooksv1alpha1.JSON{"status": {Raw: []byte(`"Success"`)}}},
			`unknown_members["status"]: is a member of the schema`, false,
		},
		"UnknownIsKind": {
			&hooksv1alpha1.DiscoveryResponse{UnknownMembers: map[string]*hooksv1alpha1.JSON{"kind": {Raw: []byte(`"X"`)}}},
			`unknown_members["kind"]: is a member of the schema`, false,
		},
		"UnknownIsKnownInAnotherCase": {
			&hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{
				HolderReference: &hooksv1alpha1.HolderReference{
					UnknownMembers: map[string]*hooksv1alpha1.JSON{"Namespace": {Raw: []byte(`"other"`)}},
				},
			}}},
			`items[0].holderReference.unknown_members["Namespace"]: differs from "namespace" only in case`, false,
		},
		"UnknownListNotNull": {
			&hooksv1alpha1.GeneratePatchesRequest{UnknownMembers: map[string]*hooksv1alpha1.JSON{"items": {Raw: []byte(`[]`)}}},
			`unknown_members["items"]: is a member of the schema`, false,
		},
		"UnknownListOmitted": {
			&hooksv1alpha1.GeneratePatchesResponse{UnknownMembers: map[string]*hooksv1alpha1.JSON{"items": {Raw: []byte(`null`)}}},
			`unknown_members["items"]: is a member of the schema`, false,
		},
		"Enum": {
			&hooksv1alpha1.GeneratePatchesResponse{Items: []*hooksv1alpha1.GeneratePatchesResponseItem{{PatchType: 7}}},
			"items[0].patchType: has no value 7", false,
		},
		"NegativeEnum": {
			&hooksv1alpha1.DiscoveryResponse{Status: -1}, "status: has no value -1", false,
		},
		"NilElement": {
			&hooksv1alpha1.DiscoveryResponse{Handlers: []*hooksv1alpha1.ExtensionHandler{nil}}, "handlers[0]: is nil", false,
		},
		"TooDeep": {
			&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: bytes.Repeat([]byte("["), 2000)}},
			"cluster: invalid JSON at byte 995: nested deeper than 1000", true,
		},
	}
	c := New(catalog.New())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := c.Check(tc.msg); err == nil || err.Error() != tc.want {
				t.Errorf("Check:\ngot  %v\nwant %s", err, tc.want)
			}
			_, err := c.Encode(tc.msg)
			switch {
			case tc.encodes && err != nil:
				t.Errorf("Encode: %v", err)
			case !tc.encodes && (err == nil || err.Error() != tc.want):
				t.Errorf("Encode:\ngot  %v\nwant %s", err, tc.want)
			}
			if before, err := c.Append([]byte("x"), tc.msg); err != nil && string(before) != "x" {
				t.Errorf("Append returned %q with an error", before)
			}
		})
	}
}

// within reports whether part is a piece of whole: the same memory, not the same bytes.
func within(part, whole []byte) bool {
	if len(part) == 0 {
		return false
	}
	for i := range whole {
		if &whole[i] == &part[0] {
			return i+len(part) <= len(whole)
		}
	}
	return false
}

func TestRawObjectsAreNotCopied(t *testing.T) {
	c := New(catalog.New())
	body := requestItems(3)
	body = append(body[:len(body)-1], `,"new":"`+strings.Repeat("x", 1000)+`"}`...)
	m := &hooksv1alpha1.GeneratePatchesRequest{}
	if err := c.Decode(body, m); err != nil {
		t.Fatal(err)
	}
	raws := map[string][]byte{"new": m.UnknownMembers["new"].Raw, "variable": m.Items[1].Variables[0].Value.Raw}
	for _, item := range m.Items {
		raws[item.Uid] = item.Object.Raw
	}
	for name, raw := range raws {
		if !within(raw, body) {
			t.Errorf("%s does not alias the body", name)
		}
		if len(raw) != cap(raw) {
			t.Errorf("%s has capacity beyond its end: appending to it would overwrite the body", name)
		}
	}
	encoded, err := c.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	aliased := 0
	for _, s := range encoded.segments {
		if within(s, body) {
			aliased++
		}
		if len(s) != cap(s) {
			t.Error("a segment has capacity beyond its end")
		}
	}
	if want := 4; aliased != want { // three objects and the unknown member; the variables are small
		t.Errorf("%d of %d segments alias the body, want %d", aliased, len(encoded.segments), want)
	}
	if got := encoded.Bytes(); !bytes.Equal(got, body) {
		t.Errorf("got  %s\nwant %s", got, body)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// TestMemory bounds the memory that a body needs besides its own bytes.
func TestMemory(t *testing.T) {
	c := New(catalog.New())
	body := requestItems(2000)
	size := int64(len(body))
	m := &hooksv1alpha1.GeneratePatchesRequest{}
	if got := allocated(func() {
		if err := c.Decode(body, m); err != nil {
			t.Fatal(err)
		}
	}); got > size/2 {
		t.Errorf("decoding %d bytes allocates %d", size, got)
	}
	var encoded Body
	if got := allocated(func() {
		var err error
		if encoded, err = c.Encode(m); err != nil {
			t.Fatal(err)
		}
	}); got > size/2 {
		t.Errorf("encoding %d bytes allocates %d", size, got)
	}
	var joined []byte
	if got := allocated(func() { joined = encoded.Bytes() }); got > size+size/10 {
		t.Errorf("joining %d bytes allocates %d", size, got)
	}
	if !bytes.Equal(joined, body) {
		t.Error("the body changed")
	}
}
