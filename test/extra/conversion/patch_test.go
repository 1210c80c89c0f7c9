// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/test/extra/conversion/random"
)

// A handler that makes any object of any other, in its version, has done so in the caller's version too: the patch
// that the caller gets makes an object of the caller's that reads, in the handler's version, as the handler wanted
// it. What the handler's version has no name for is as it was.
func TestPatchesOfRandomObjects(t *testing.T) {
	o := convert.NewObjects(random.References())
	for _, kind := range []string{"Machine", "MachineSet"} {
		for _, d := range [][2]string{{convert.V1Beta2, convert.V1Beta1}, {convert.V1Beta1, convert.V1Beta2}} {
			caller, handler := d[0], d[1]
			t.Run(fmt.Sprintf("%s of %s", kind, caller), func(t *testing.T) {
				t.Parallel()
				generator := random.New(seed(t) + 2)
				for n := range objects {
					current, wanted := generator.Object(kind, caller), generator.Object(kind, handler)
					// Cluster API takes the spec of what is patched, and nothing else.
					c, w := reflect.ValueOf(current).Elem(), reflect.ValueOf(wanted).Elem()
					w.FieldByName("ObjectMeta").Set(c.FieldByName("ObjectMeta"))
					c.FieldByName("Status").SetZero()
					w.FieldByName("Status").SetZero()
					checkPatch(t, o, n, kind, marshal(t, current), marshal(t, wanted), handler, caller)
					if t.Failed() {
						t.FailNow()
					}
				}
			})
		}
	}
}

// checkPatch lets a handler change current, which it sees in its version, into wanted.
func checkPatch(t *testing.T, o *convert.Objects, n int, kind string, current, wanted []byte, handler, caller string) {
	t.Helper()
	req, seen := patchRequest(kind, current)
	c, err := o.Request(req, handler)
	if err != nil {
		t.Fatal(err)
	}
	// What the caller's version cannot express cannot be wanted.
	inCaller, _ := ours(t, o, kind, wanted, caller)
	wanted, _ = ours(t, o, kind, inCaller, handler)
	merge, err := jsonpatch.CreateMergePatch(seen(c.Message), wanted)
	if err != nil {
		t.Fatal(err)
	}
	patch := &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: merge}
	var answer proto.Message = &hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: patch}
	if kind == "MachineSet" {
		answer = &hooksv1alpha1.CanUpdateMachineSetResponse{MachineSetPatch: patch}
	}
	answer, losses, err := c.Response(answer)
	if err != nil {
		t.Fatalf("object %d: %v\ncurrent: %s\npatch: %s", n, err, current, merge)
	}
	if len(losses) > 0 {
		t.Errorf("object %d: losses %v\ncurrent: %s\npatch: %s", n, losses, current, merge)
	}
	switch a := answer.(type) {
	case *hooksv1alpha1.CanUpdateMachineResponse:
		patch = a.MachinePatch
	case *hooksv1alpha1.CanUpdateMachineSetResponse:
		patch = a.MachineSetPatch
	}
	patched, err := jsonpatch.MergePatch(slices.Clone(current), patch.Patch)
	if err != nil {
		t.Fatal(err)
	}
	now, lost := ours(t, o, kind, patched, handler)
	if w, g := parsed(t, wanted), parsed(t, now); !reflect.DeepEqual(w, g) {
		t.Errorf("object %d (-wanted +patched):\n%s\ncurrent: %s\nthe handler's patch: %s\nthe caller's: %s", n,
			cmp.Diff(w, g), current, merge, patch.Patch)
	}
	// What the handler cannot see is still there, unless what it was about is not.
	for _, loss := range c.Losses {
		if kind == "Machine" && loss == "machine.spec.minReadySeconds" && !slices.Contains(lost, loss) {
			t.Errorf("object %d: %s was removed by %s\ncurrent: %s", n, loss, patch.Patch, current)
		}
	}
}

// patchRequest returns a request whose answer may have a patch for the object, and how to get the object out of one.
func patchRequest(kind string, object []byte) (proto.Message, func(proto.Message) []byte) {
	if kind == "MachineSet" {
		return request(kind, object)
	}
	return &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: &hooksv1alpha1.RawExtension{Raw: object}}},
		func(m proto.Message) []byte { return m.(*hooksv1alpha1.CanUpdateMachineRequest).Current.Machine.Raw }
}
