// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	library "github.com/evanphx/json-patch/v5"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

const (
	jsonPatch  = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	mergePatch = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
)

// clusterAPI is what Cluster API makes of an object and a patch, with its library: it keeps what the patched object has
// at the places, and leaves the rest as it was.
func clusterAPI(object []byte, t hooksv1alpha1.PatchType, patch []byte, places ...string) (_ []byte, err error) {
	var patched []byte
	if t == mergePatch {
		patched, err = library.MergePatch(slices.Clone(object), patch)
	} else if operations, decodeErr := library.DecodePatch(patch); decodeErr != nil {
		return nil, decodeErr
	} else {
		patched, err = operations.Apply(slices.Clone(object))
	}
	if err != nil {
		return nil, err
	}
	var before, after map[string]any
	if err := errors.Join(json.Unmarshal(object, &before), json.Unmarshal(patched, &after)); err != nil {
		return nil, err
	}
	for _, place := range places {
		if v, ok := get(after, place); ok {
			if err := put(before, place, v); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(before)
}

// randomPatch returns a patch that often applies to an object of randomObject, and touches what is kept and what is not.
func randomPatch(r *rand.Rand) (hooksv1alpha1.PatchType, string) {
	values := []string{`1`, `"x"`, `{"a":{"b":[1,2]}}`, `[3]`, `null`, `{}`}
	value := func() string { return values[r.IntN(len(values))] }
	if r.IntN(4) == 0 {
		return mergePatch, []string{
			`{"spec":{"a":` + value() + `}}`, `{"spec":{"list":null},"status":1}`, `{"metadata":{"labels":{"l":"2"},"name":"other"}}`,
			`{"metadata":{"annotations":null}}`, `{"spec":null}`, `{"kind":"Other"}`,
		}[r.IntN(6)]
	}
	paths := []string{
		"/spec", "/spec/a", "/spec/a/b", "/spec/list/0", "/spec/list/-", "/spec/c~1d", "/metadata", "/metadata/labels", "/metadata/labels/l",
		"/metadata/annotations", "/metadata/name", "/status", "/status/s", "x/spec/a",
	}
	path := func() string { return paths[r.IntN(len(paths))] }
	var operations []string
	for range 1 + r.IntN(3) {
		switch r.IntN(6) {
		case 0:
			operations = append(operations, fmt.Sprintf(`{"op":"remove","path":%q}`, path()))
		case 1:
			operations = append(operations, fmt.Sprintf(`{"op":"move","from":%q,"path":%q}`, path(), path()))
		case 2:
			operations = append(operations, fmt.Sprintf(`{"op":"copy","from":%q,"path":%q}`, path(), path()))
		default:
			operations = append(operations, fmt.Sprintf(`{"op":"add","path":%q,"value":%s}`, path(), value()))
		}
	}
	return jsonPatch, "[" + strings.Join(operations, ",") + "]"
}

func randomObject(r *rand.Rand) string {
	return []string{
		`{"kind":"K","metadata":{"name":"n","labels":{"l":"1"}},"spec":{"a":{"b":1},"list":[1,2],"c/d":"e\"\n"},"status":{"s":1}}`,
		`{"kind":"K","metadata":{"name":"n","annotations":{}},"spec":{"list":[{"x":null}]}}`,
		`{"kind":"K","metadata":{"name":"n"}}`,
	}[r.IntN(3)]
}

func mustEqual(t *testing.T, what string, got, want []byte) {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal(want, &b)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("%s: got %s, want %s", what, got, want)
	}
}

// Each step sees what Cluster API would have made of the patches of the steps before it, and the chain's answer applied
// to the original makes what the last step made.
func TestPatchesAreThoseOfSteps(t *testing.T) {
	applied := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		req := &hooksv1alpha1.GeneratePatchesRequest{}
		var wanted [][]byte
		for i := range 1 + r.IntN(3) {
			object := randomObject(r)
			wanted = append(wanted, []byte(object))
			req.Items = append(req.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
				Uid: strconv.Itoa(i), Object: &hooksv1alpha1.RawExtension{Raw: []byte(object)},
			})
		}
		original := slices.Clone(wanted)
		p := NewPatches(req, jsonpatch.Guard{})
		for range 1 + r.IntN(5) {
			answer := &hooksv1alpha1.GeneratePatchesResponse{}
			next := slices.Clone(wanted)
			for range r.IntN(4) {
				at := r.IntN(len(wanted))
				kind, patch := randomPatch(r)
				patched, err := clusterAPI(next[at], kind, []byte(patch), keptOfTemplates...)
				if err != nil {
					continue // a single patch that does not apply is another test's
				}
				next[at] = patched
				answer.Items = append(answer.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
					Uid: strconv.Itoa(at), PatchType: kind, Patch: []byte(patch),
				})
			}
			if err := p.Add(answer); err != nil {
				t.Fatalf("seed %d: %v of %v", seed, err, answer)
			}
			wanted = next
			applied += len(answer.Items)
			for i, item := range p.Request().(*hooksv1alpha1.GeneratePatchesRequest).GetItems() {
				mustEqual(t, fmt.Sprintf("seed %d, item %d", seed, i), item.GetObject().GetRaw(), wanted[i])
			}
		}
		whole := original
		for _, item := range p.Items() {
			at := p.byUID[item.GetUid()]
			var err error
			if whole[at], err = clusterAPI(whole[at], item.GetPatchType(), item.GetPatch(), keptOfTemplates...); err != nil {
				t.Fatalf("seed %d: the answer does not apply: %v", seed, err)
			}
		}
		for i := range whole {
			mustEqual(t, fmt.Sprintf("seed %d, answer of item %d", seed, i), whole[i], wanted[i])
		}
	}
	if applied < 2000 {
		t.Errorf("only %d patches applied", applied)
	}
}

// An item with another object has all fields of the one that it is made of.
func TestWithObject(t *testing.T) {
	item := &hooksv1alpha1.GeneratePatchesRequestItem{
		Uid: "u", HolderReference: &hooksv1alpha1.HolderReference{Name: "n"}, Object: raw("{}"),
		Variables: []*hooksv1alpha1.Variable{{Name: "v"}}, UnknownMembers: map[string]*hooksv1alpha1.JSON{"x": {Raw: []byte("1")}},
	}
	fields := item.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		if !item.ProtoReflect().Has(fields.Get(i)) {
			t.Errorf("the test lacks %s", fields.Get(i).Name())
		}
	}
	if got := withObject(item, []byte("{}")); !proto.Equal(got, item) {
		t.Errorf("got %v, want %v", got, item)
	}
}

// Patches that Cluster API could not apply fail here, with the item by what it is for, and the path.
func TestPatchesThatDoNotApply(t *testing.T) {
	const object = `{"spec":{"a":1}}`
	for patch, want := range map[*hooksv1alpha1.GeneratePatchesResponseItem]string{
		{Uid: "other", PatchType: jsonPatch}:                                                           "items[0] is for a uid that the request does not have",
		{Uid: "u", PatchType: jsonPatch, Patch: []byte(`[{"op":"remove","path":"/spec/b"}]`)}:          `patch of item MachineDeployment ns/md spec.x: operation 0 at "/spec/b": there is no such place`,
		{Uid: "u", PatchType: jsonPatch, Patch: []byte(`[{"op":"add","path":"/spec/a/b","value":1}]`)}: `patch of item MachineDeployment ns/md spec.x: operation 0 at "/spec/a/b": there is no such place`,
		{Uid: "u", Patch: []byte(`{}`)}:                                                                "patch of item MachineDeployment ns/md spec.x: its patchType is neither JSONPatch nor JSONMergePatch",
		{Uid: "u", PatchType: mergePatch, Patch: []byte(`{`)}:                                          "patch of item MachineDeployment ns/md spec.x: JSON ends early at byte 1",
		{Uid: "u", PatchType: jsonPatch, Patch: []byte(`{"a":1}`)}:                                     "patch of item MachineDeployment ns/md spec.x: it is not a list of operations",
	} {
		p := NewPatches(&hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{
			Uid: "u", Object: &hooksv1alpha1.RawExtension{Raw: []byte(object)},
			HolderReference: &hooksv1alpha1.HolderReference{Kind: "MachineDeployment", Namespace: "ns", Name: "md", FieldPath: "spec.x"},
		}}}, jsonpatch.Guard{})
		err := p.Add(&hooksv1alpha1.GeneratePatchesResponse{Items: []*hooksv1alpha1.GeneratePatchesResponseItem{patch}})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What the work on objects allocates is reserved first, of many small objects too.
func TestPatchesReserve(t *testing.T) {
	req, answer := &hooksv1alpha1.GeneratePatchesRequest{}, &hooksv1alpha1.GeneratePatchesResponse{}
	for i := range 100 {
		req.Items = append(req.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			Uid: strconv.Itoa(i), Object: &hooksv1alpha1.RawExtension{Raw: []byte(`{"spec":{"text":"` + strings.Repeat("x", 1000) + `"}}`)},
		})
		answer.Items = append(answer.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
			Uid: strconv.Itoa(i), PatchType: mergePatch, Patch: []byte(`{"spec":{"a":1}}`),
		})
	}
	reserved := int64(0)
	refuse := hook.Errorf(hook.Overloaded, "no memory")
	p := NewPatches(req, jsonpatch.Guard{Reserve: func(n int64) error {
		if reserved += n; reserved > 200_000 {
			return refuse
		}
		return nil
	}})
	if err := p.Add(answer); !errors.Is(err, refuse) {
		t.Errorf("got %v, want the error of the reservation", err)
	}
}
