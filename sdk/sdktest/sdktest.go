// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sdktest tests extensions that are built with package sdk: a request from a file to a handler in this process,
// and the conformance checks of the whole extension over gRPC, by the program hookgate. What is wrong fails the test.
package sdktest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
	"github.com/hookgate/hookgate/sdk/internal/contract"
)

// Request reads the request of a hook, of any group, from a file: the contract's JSON, or YAML of the same form, as in
// examples/requests.
func Request[Req proto.Message](t testing.TB, path string) Req {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		if data, err = yaml.YAMLToJSONStrict(data); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	var none Req
	in, ok := none.ProtoReflect().New().Interface().(Req)
	if !ok {
		t.Fatalf("%T is not a message from the generated stubs", none)
	}
	if err := contract.Decode(data, in); err != nil {
		t.Fatalf("%s is no %s: %v", path, none.ProtoReflect().Descriptor().Name(), err)
	}
	return in
}

// Call returns the answer of the extension to a request, whose member handler selects the handler. For the gRPC status
// of a call that fails, use x.Call.
func Call[Resp proto.Message](t testing.TB, x *sdk.Extension, in proto.Message) Resp {
	t.Helper()
	answer, err := x.Call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out, ok := answer.(Resp)
	if !ok {
		t.Fatalf("the answer is a %T, not a %T", answer, out)
	}
	return out
}

// Patched returns the objects of a request after the patches of an answer, by the uid of their item. Their numbers are
// of the type json.Number.
func Patched(
	t testing.TB, in *hooksv1alpha1.GeneratePatchesRequest, out *hooksv1alpha1.GeneratePatchesResponse,
) map[string]map[string]any {
	t.Helper()
	if out.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		t.Fatalf("the answer is %s: %s", out.GetStatus(), out.GetMessage())
	}
	texts := map[string][]byte{}
	for _, item := range in.GetItems() {
		texts[item.GetUid()] = item.GetObject().GetRaw()
	}
	for _, item := range out.GetItems() {
		text, ok := texts[item.GetUid()]
		if !ok {
			t.Fatalf("the answer has a patch for %q, which the request does not have", item.GetUid())
		}
		var err error
		if texts[item.GetUid()], err = apply(text, item.GetPatchType(), item.GetPatch()); err != nil {
			t.Fatalf("the patch of item %s: %v\n%s", item.GetUid(), err, item.GetPatch())
		}
	}
	objects := map[string]map[string]any{}
	for uid, text := range texts {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var object map[string]any
		if err := decoder.Decode(&object); err != nil || object == nil {
			t.Fatalf("after the patches, item %s is not an object: %v", uid, err)
		}
		objects[uid] = object
	}
	return objects
}

// apply applies a patch with the library of Cluster API.
func apply(text []byte, of hooksv1alpha1.PatchType, patch []byte) ([]byte, error) {
	if of == hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH {
		return jsonpatch.MergePatch(text, patch)
	}
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return operations.Apply(text)
}
