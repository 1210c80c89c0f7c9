// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// That a step makes too much of a small object is its own fault: BadResponse, which Ignore hides, and not TooLarge. What
// it has changed is gone then.
func TestStepsThatMakeObjectsTooLarge(t *testing.T) {
	many := func(n int) string { return `[1` + strings.Repeat(",1", n-1) + `]` }
	half := limits.ObjectElements/2 + 10
	small := patchItem("2", `{"spec":{"b":2}}`)
	for name, first := range map[string]*hooksv1alpha1.GeneratePatchesResponse{
		"one patch":   patched(patchItem("1", `{"spec":{"a":`+many(limits.ObjectElements+10)+`}}`)),
		"two patches": patched(patchItem("1", `{"spec":{"a":`+many(half)+`}}`), patchItem("1", `{"spec":{"b":`+many(half)+`}}`)),
		"copies": patched(&hooksv1alpha1.GeneratePatchesResponseItem{
			Uid: "1", PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH,
			Patch: fmt.Appendf(nil, `[{"op":"add","path":"/spec/a","value":%s},{"op":"copy","from":"/spec/a","path":"/spec/b"}]`, many(half)),
		}),
	} {
		f := newChain(t, "GeneratePatches", first, patched(small))
		_, failed := f.call(t, templatesOf(`{"spec":{}}`, `{"spec":{}}`))
		if !strings.HasPrefix(failed, `BadResponse: handler "a.e": `) {
			t.Errorf("%s: got %.300s, want the fault of the step", name, failed)
		}
		f.handlers[0].FailurePolicy = hook.Ignore
		m, failed := f.build(t).call(t, templatesOf(`{"spec":{}}`, `{"spec":{}}`))
		answer, _ := m.(*hooksv1alpha1.GeneratePatchesResponse)
		if len(answer.GetItems()) != 1 || !proto.Equal(answer.GetItems()[0], small) ||
			answer.GetMessage() != `ignored: handler "a.e": BadResponse` {
			t.Errorf("%s, ignored: got %.300v, %.300s", name, m, failed)
		}
		if got := f.requests["b.e"].(*hooksv1alpha1.GeneratePatchesRequest).GetItems()[0].GetObject().GetRaw(); string(got) != `{"spec":{}}` {
			t.Errorf("%s, ignored: the next step sees %.300s", name, got)
		}
	}
	// What the caller has sent is no step's fault.
	f := newChain(t, "GeneratePatches", patched(patchItem("1", `{"spec":{"b":2}}`)), patched(small))
	f.call(t, templatesOf(`{"spec":{"a":`+many(limits.ObjectElements+10)+`}}`, `{}`))
	if _, failed := f.call(t, templatesOf(`{"spec":{"a":`+many(limits.ObjectElements+10)+`}}`, `{"spec":{}}`)); strings.HasPrefix(failed, "BadResponse") {
		t.Errorf("a large object of the caller: %.300s", failed)
	}
}

// The same of objects that are updated in place, whichever object and hook. Ignore cannot hide it: steps that have it are
// not called at all.
func TestStepsThatMakeObjectsInPlaceTooLarge(t *testing.T) {
	many := func(n int) string { return `[1` + strings.Repeat(",1", n-1) + `]` }
	large, half := `{"spec":{"a":`+many(limits.ObjectElements+10)+`}}`, limits.ObjectElements/2+10
	merge := func(patch string) *hooksv1alpha1.Patch {
		return &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: []byte(patch)}
	}
	empty := &hooksv1alpha1.RawExtension{Raw: []byte(`{}`)}
	ofSet := func(spec string) *hooksv1alpha1.CanUpdateMachineSetRequestObjects {
		return &hooksv1alpha1.CanUpdateMachineSetRequestObjects{
			MachineSet:                    &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n"},"spec":{"template":{"spec":` + spec + `}}}`)},
			InfrastructureMachineTemplate: empty, BootstrapConfigTemplate: empty,
		}
	}
	set := &hooksv1alpha1.CanUpdateMachineSetRequest{Current: ofSet(`{}`), Desired: ofSet(`{"x":1}`)}
	for name, tc := range map[string]struct {
		hook    string
		request proto.Message
		steps   []proto.Message
		want    string // the step at fault
	}{
		"one patch":     {"CanUpdateMachine", updateRequest(`{}`, `{"x":1}`), []proto.Message{canUpdate(large), canUpdate(`{"spec":{"x":1}}`)}, "a.e"},
		"the last step": {"CanUpdateMachine", updateRequest(`{}`, `{"x":1}`), []proto.Message{canUpdate(`{"spec":{"b":1}}`), canUpdate(large)}, "b.e"},
		"two, the later": {"CanUpdateMachine", updateRequest(`{}`, `{"x":1}`), []proto.Message{
			canUpdate(`{"spec":{"a":` + many(half) + `}}`), canUpdate(`{"spec":{"b":` + many(half) + `}}`)}, "b.e"},
		"copies": {"CanUpdateMachine", updateRequest(`{}`, `{"x":1}`), []proto.Message{&hooksv1alpha1.CanUpdateMachineResponse{
			Status: success, MachinePatch: &hooksv1alpha1.Patch{PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH, Patch: fmt.Appendf(nil,
				`[{"op":"add","path":"/spec/a","value":%s},{"op":"copy","from":"/spec/a","path":"/spec/b"}]`, many(half))},
		}, canUpdate("")}, "a.e"},
		"another object": {"CanUpdateMachine", updateRequest(`{}`, `{"x":1}`), []proto.Message{
			&hooksv1alpha1.CanUpdateMachineResponse{Status: success, BootstrapConfigPatch: merge(large)}, canUpdate("")}, "a.e"},
		"MachineSet": {"CanUpdateMachineSet", set, []proto.Message{&hooksv1alpha1.CanUpdateMachineSetResponse{
			Status: success, MachineSetPatch: merge(`{"spec":{"template":{"spec":{"a":` + many(limits.ObjectElements+10) + `}}}}`),
		}, &hooksv1alpha1.CanUpdateMachineSetResponse{Status: success}}, "a.e"},
	} {
		f := newChain(t, tc.hook, tc.steps...)
		f.chain.Strict = true
		got, failed := f.build(t).call(t, tc.request)
		if want := `BadResponse: handler "` + tc.want + `": `; got != nil || !strings.HasPrefix(failed, want) {
			t.Errorf("%s: got %.300v, %.300s; want %s", name, got, failed, want)
		}
		if last := f.called[len(f.called)-1]; last != tc.want {
			t.Errorf("%s: the last step called was %s, want %s", name, last, tc.want)
		}
		f.handlers[0].FailurePolicy = hook.Ignore
		if got, failed = f.build(t).call(t, tc.request); got != nil || !strings.Contains(failed, "has failurePolicy Ignore") || len(f.called) > 0 {
			t.Errorf("%s, Ignore: got %.300v, %.300s after calls of %v", name, got, failed, f.called)
		}
	}
}
