// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package answerdiff

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// patched returns a request about an object, and answers that patch it in two ways.
func patched(object string) (request, was, now proto.Message) {
	answer := func(value string) proto.Message {
		return &hooksv1alpha1.GeneratePatchesResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
			Items: []*hooksv1alpha1.GeneratePatchesResponseItem{{
				Uid: "1", PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH,
				Patch: fmt.Appendf(nil, `{"spec":{"version":%q}}`, value),
			}},
		}
	}
	return &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{
		Uid: "1", Object: &hooksv1alpha1.RawExtension{Raw: []byte(object)},
	}}}, answer("v6"), answer("v7")
}

// What is compared is counted before it is built: small values, and JSON pointers, take many times the text.
func TestComparisonIsBounded(t *testing.T) {
	const size = 14 << 20
	members := make([]string, 40_000)
	for i := range members {
		members[i] = fmt.Sprintf(`"%d":0`, i)
	}
	long := strings.Repeat("x", 500<<10)
	variables := func(schema string) proto.Message {
		return &hooksv1alpha1.DiscoverVariablesResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
			Variables: []*hooksv1alpha1.ClusterClassVariable{{Name: "v", UnknownMembers: map[string]*hooksv1alpha1.JSON{
				"x": {Raw: []byte(schema)},
			}}},
		}
	}
	ofObject := func(object string) func() (a, b, c proto.Message) {
		return func() (a, b, c proto.Message) { return patched(object) }
	}
	for name, of := range map[string]func() (request, was, now proto.Message){
		"objects":   ofObject(`{"spec":{"list":[{}` + strings.Repeat(",{}", size/3) + `]}}`),
		"lists":     ofObject(`{"spec":{"list":[[]` + strings.Repeat(",[]", size/3) + `]}}`),
		"numbers":   ofObject(`{"spec":{"list":[0` + strings.Repeat(",0", size/2) + `]}}`),
		"elsewhere": ofObject(`{"status":[{}` + strings.Repeat(",{}", size/3) + `],"spec":{}}`),
		"an answer": func() (request, was, now proto.Message) {
			return &hooksv1alpha1.DiscoverVariablesRequest{}, variables(`[0` + strings.Repeat(",0", size/2) + `]`), variables(`0`)
		},
		"pointers": func() (request, was, now proto.Message) {
			request, was, now = patched(`{"spec":{}}`)
			last, _ := now.(*hooksv1alpha1.GeneratePatchesResponse)
			last.Items[0].Patch = fmt.Appendf(nil, `{"spec":{%q:{%s}}}`, long, strings.Join(members, ","))
			return request, was, now
		},
	} {
		t.Run(name, func(t *testing.T) {
			request, was, now := of()
			reserved := int64(0)
			c := Comparer{Codec: codec.New(catalog.New()), Guard: jsonpatch.Guard{
				Reserve: func(bytes int64) error { reserved += bytes; return nil },
			}}
			var err error
			alloctest.Bound{Base: 128 << 20}.Check(t, size, func() { _, err = c.Compare(request, was, now) })
			if hook.KindOf(err) != hook.TooLarge {
				t.Errorf("got %v, want that it is too large", err)
			}
			if reserved == 0 {
				t.Error("nothing was reserved")
			}
		})
	}
}

// An object that is compared reserves what its values take, and a refusal ends the comparison.
func TestComparisonReserves(t *testing.T) {
	const elements = 40_000
	request, was, now := patched(`{"spec":{"list":[{}` + strings.Repeat(",{}", elements) + `]}}`)
	var reserved int64
	c := Comparer{Codec: codec.New(catalog.New()), Guard: jsonpatch.Guard{
		Reserve: func(bytes int64) error { reserved += bytes; return nil },
	}}
	differences, err := c.Compare(request, was, now)
	if err != nil || len(differences) != 1 {
		t.Fatalf("got %v, %v", differences, err)
	}
	alloctest.Bound{Base: uint64(reserved)}.Check(t, 0, func() { _, _ = c.Compare(request, was, now) })

	var released int64
	c.Release = func(bytes int64) { released += bytes }
	reserved = 0
	if _, err = c.Compare(request, was, now); err != nil || released < elements*jsonpatch.MemberCost || released > reserved {
		t.Errorf("%d bytes of %d are given back, %v", released, reserved, err)
	}

	refused := errors.New("none to spare")
	c.Guard.Reserve = func(int64) error { return hook.Errorf(hook.Overloaded, "no").WithCause(refused) }
	if _, err := c.Compare(request, was, now); !errors.Is(err, refused) {
		t.Errorf("got %v, want the refusal", err)
	}
}
