// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"context"
	"strings"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// nestedIn returns text within so many objects.
func nestedIn(levels int, text string) string {
	return strings.Repeat(`{"a":`, levels) + text + strings.Repeat(`}`, levels)
}

// A patch takes memory and time in proportion to its text and that of the object, however deep they are and however many
// members they have.
func TestPatchesTakeLittle(t *testing.T) {
	const deep = 900
	large := `"` + strings.Repeat("y", 256<<10) + `"`
	members := numbered(40_000, `"`+strings.Repeat("k", 300)+`%05d":""`)
	inside := func(text string) string { return strings.Replace(hubMachine, `"new":1,`, `"new":1,`+text+`,`, 1) }
	for name, tc := range map[string]struct {
		object string
		kind   hooksv1alpha1.PatchType
		patch  string
		want   hook.Kind // of the error, if want is set
		text   string
	}{
		"a deep merge patch": {hubMachine, mergePatch, `{"spec":{"x":` + nestedIn(deep, large) + `}}`, 0, ""},
		"a deep value":       {hubMachine, jsonPatch, `[{"op":"add","path":"/spec/x","value":` + nestedIn(deep, large) + `},{"op":"add","path":"/spec/x` + strings.Repeat("/a", deep-1) + `/b","value":1}]`, 0, ""},
		"a deep object":      {inside(`"x":` + nestedIn(deep, large)), jsonPatch, `[{"op":"add","path":"/spec/x` + strings.Repeat("/a", deep-1) + `/b","value":1}]`, 0, ""},
		"a path of slashes":  {hubMachine, jsonPatch, `[{"op":"add","path":"` + strings.Repeat("/", 1<<20) + `","value":1}]`, hook.BadResponse, "cannot be applied"},
		"many members":       {hubMachine, mergePatch, `{"metadata":{"labels":{` + members + `}}}`, 0, ""},
		"a deep list":        {inside(`"x":[` + manyTimes(30_000, "0") + `]`), jsonPatch, `[` + manyTimes(10_000, `{"op":"add","path":"/spec/x/0","value":1}`) + `]`, 0, ""},
		"copies":             {inside(`"x":[` + manyTimes(30_000, "0") + `]`), jsonPatch, `[` + manyTimes(3, `{"op":"copy","from":"/spec/x","path":"/spec/x/-"}`) + `]`, hook.BadResponse, "it has more than 50000 list elements"},
		"copies of text":     {inside(`"x":[` + large + `]`), jsonPatch, `[` + manyTimes(100, `{"op":"copy","from":"/spec/x/0","path":"/spec/x/-"}`) + `]`, hook.BadResponse, "cannot be applied"},
		"values of the object": {strings.Replace(hubMachine, `{"a":"b"}`, `{"a":"b"},"x":[`+manyTimes(2_000_000, "1")+`]`, 1), mergePatch, `{"spec":{"version":"v2"}}`, hook.TooLarge,
			"convert current.machine to v1beta2: it has more than 50000 list elements"},
		"a string without an end": {hubMachine, mergePatch, `"` + strings.Repeat(`\"`, 1<<20) + "\n", hook.BadResponse, "cannot be applied"},
	} {
		t.Run(name, func(t *testing.T) {
			var reserved int64
			c, err := patchObjects().RequestGuarded(jsonpatch.Guard{Reserve: func(n int64) error { reserved += n; return nil }},
				machineRequest(tc.object, tc.object), V1Beta1)
			if err != nil {
				t.Fatal(err)
			}
			reserved = 0
			patch := &hooksv1alpha1.Patch{PatchType: tc.kind, Patch: []byte(tc.patch)}
			alloctest.Bound{Base: 64 << 20, PerByte: 32}.Check(t, len(tc.object)+len(tc.patch), func() {
				_, _, err = c.Response(&hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: patch})
			})
			if tc.text == "" && err != nil || tc.text != "" && (hook.KindOf(err) != tc.want || !strings.Contains(err.Error(), tc.text)) {
				t.Errorf("got %.300v, want %q", err, tc.text)
			}
			if err == nil && reserved < int64(len(tc.patch)) {
				t.Errorf("%d bytes were reserved for a patch of %d", reserved, len(tc.patch))
			}
		})
	}
}

// A patch that moves many elements, or is large, ends with the call, and takes a turn with the heavy work of others; a
// small one does not wait.
func TestPatchesEndInTime(t *testing.T) {
	object := strings.Replace(hubMachine, `"new":1,`, `"new":1,"x":[`+manyTimes(40_000, "0")+`],`, 1)
	for name, tc := range map[string]struct {
		kind  hooksv1alpha1.PatchType
		patch string
		want  bool // it is ended
	}{
		"small":  {jsonPatch, `[{"op":"remove","path":"/spec/x/0"}]`, false},
		"moving": {jsonPatch, `[` + manyTimes(100, `{"op":"remove","path":"/spec/x/0"}`) + `]`, true},
		"large":  {mergePatch, `{"spec":{"y":"` + strings.Repeat("y", 256<<10) + `"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c, err := patchObjects().RequestGuarded(jsonpatch.Guard{Step: ctx.Err}, machineRequest(object, object), V1Beta1)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			_, _, err = c.Response(&hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: &hooksv1alpha1.Patch{
				PatchType: tc.kind, Patch: []byte(tc.patch),
			}})
			if tc.want != (hook.KindOf(err) == hook.Canceled) || !tc.want && err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}
