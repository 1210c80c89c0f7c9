// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/alloctest"
)

var errPanic = errors.New("panic")

// byLibrary applies a patch with the library that Cluster API uses.
func byLibrary(patch *hooksv1alpha1.Patch, object []byte) (patched []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	object = bytes.Clone(object)
	if patch.GetPatchType() == mergePatch {
		return jsonpatch.MergePatch(object, patch.GetPatch())
	}
	operations, err := jsonpatch.DecodePatch(patch.GetPatch())
	if err != nil {
		return nil, err
	}
	return operations.Apply(object)
}

const patchedObject = `{"a":{"b":[1,{"c":null,"x":12345678901234567890},[]],"d/e":{"~":"f"},"g":null},"h":[{"i":[0]}],"j":"k"}`

// Whatever the library makes of an object, apply makes as well, and it fails where the library does.
func TestPatchesAreThoseOfTheLibrary(t *testing.T) {
	for _, text := range []string{
		`[]`, `null`, `{}`, `[null]`, `[{}]`, `[1]`, `"x"`, `[{"op":"add","path":"/a"}]`, `[{"op":"x","path":"/a","value":1}]`, `[`, `[] []`,
		`[{"op":"add","path":"/n","value":null}]`, `[{"op":"add","path":"/a/b/0","value":0},{"op":"add","path":"/a/b/4","value":4},{"op":"add","path":"/a/b/-","value":5}]`,
		`[{"op":"add","path":"/a/b/5","value":0}]`, `[{"op":"add","path":"/a/b/-1","value":9},{"op":"add","path":"/a/b/-5","value":8}]`, `[{"op":"add","path":"/a/b/-6","value":8}]`,
		`[{"op":"add","path":"/a/b/2/0","value":1},{"op":"add","path":"/a/b/2/-","value":{"y":[]}},{"op":"add","path":"/a/b/2/1/y/-","value":2}]`,
		`[{"op":"add","path":"/a/b/x","value":8}]`, `[{"op":"add","path":"/j/x","value":8}]`, `[{"op":"add","path":"/x/y","value":8}]`, `[{"op":"add","path":"/a/g/y","value":8}]`,
		`[{"op":"add","path":"","value":{"z":[1]}},{"op":"add","path":"/z/0","value":2}]`, `[{"op":"replace","path":"","value":{"z":1}}]`, `[{"op":"add","path":3,"value":8}]`,
		`[{"op":"add","path":"ignored/a/n","value":8}]`, `[{"op":"add","path":"n","value":8}]`,
		`[{"op":"replace","path":"/a/d~1e/~0","value":"~1"}]`, `[{"op":"replace","path":"/n","value":1}]`, `[{"op":"replace","path":"/a/b/3","value":1}]`, `[{"op":"replace","path":"/a/b/-1","value":{"l":1}}]`,
		`[{"op":"replace","path":"/a/b/-","value":1}]`, `[{"op":"replace","path":"/a/g","value":1}]`, `[{"op":"remove","path":"/a/b/0"},{"op":"remove","path":"/a/b/-1"},{"op":"remove","path":"/h"}]`,
		`[{"op":"remove","path":"/n"}]`, `[{"op":"remove","path":"/a/b/3"}]`, `[{"op":"remove","path":"/a/b/-4"}]`, `[{"op":"remove","path":"/a/b/-"}]`, `[{"op":"remove","path":""}]`, `[{"op":"remove","path":"/h/0/i/0"}]`,
		`[{"op":"move","from":"/a/b","path":"/h/0/b"}]`, `[{"op":"move","from":"/a/b/0","path":"/a/b/-"}]`, `[{"op":"move","from":"/a","path":"/a/b"}]`, `[{"op":"move","path":"/a"}]`, `[{"op":"move","from":"","path":"/a"}]`,
		`[{"op":"copy","from":"/a","path":"/h/0/a"},{"op":"remove","path":"/a/b/0"},{"op":"add","path":"/h/0/a/b/1/new","value":true}]`, `[{"op":"copy","from":"/n","path":"/a"}]`, `[{"op":"copy","from":"/a/g","path":"/m"}]`,
		`[{"op":"copy","from":"/a/b/2","path":"/h/-"},{"op":"add","path":"/h/1/-","value":1}]`, `[{"op":"copy","path":"/h/-"}]`,
		`[{"op":"test","path":"/a/b","value":[1,{"x":12345678901234567890,"c":null},[]]},{"op":"add","path":"/n","value":1}]`, `[{"op":"test","path":"/a/b","value":[1]}]`, `[{"op":"test","path":"/a/b/0","value":1.0}]`,
		`[{"op":"test","path":"/n","value":null},{"op":"test","path":"/a/g"}]`, `[{"op":"test","path":"/n","value":1}]`, `[{"op":"test","path":"/n/n","value":null}]`, `[{"op":"test","path":"/a/b/7","value":null}]`,
		`[{"op":"test","path":"/j","value":"\u006b"}]`, `[{"op":"test","path":"/j","value":{}}]`, `[{"op":"test","path":"/h","value":{}}]`, `[{"op":"test","path":"/a/d~1e","value":[]}]`, `[{"op":"test","path":"/a/b/0","value":"1"}]`,
		`{"a":null,"n":null,"o":{"p":null,"q":[{"r":null},null]}}`, `{"a":{"b":null,"g":{"s":null}},"h":[{"t":null}],"j":[{"u":null}]}`, `{"a":[{"v":null}]}`, `{"a":{"b":{"w":null}},"j":{"x":{"y":null}}}`,
		`{"a":1e2,"h":0.10}`, `{"j":"<&>\u2028\ud800"}`, `{"j":1,"j":2}`, `[1]`, `7`, `{"a":`, `{} {}`,
	} {
		comparePatch(t, jsonPatch, text)
		comparePatch(t, mergePatch, text)
	}
}

// FuzzPatch compares patches with those of the library.
func FuzzPatch(f *testing.F) {
	f.Add([]byte(`[{"op":"add","path":"/a/b/0","value":{"x":null}},{"op":"copy","from":"/a","path":"/h/0/i/-"},{"op":"test","path":"/j","value":"k"}]`), true)
	f.Add([]byte(`[{"op":"move","from":"/a/b/1","path":"/h/-1"},{"op":"replace","path":"/a/d~1e","value":[1]},{"op":"remove","path":"/h/0"}]`), true)
	f.Add([]byte(`{"a":{"b":[{"c":null}],"d/e":{"~":null,"z":{"y":null}}},"h":{"i":null}}`), false)
	f.Fuzz(func(t *testing.T, patch []byte, operations bool) {
		kind := mergePatch
		if operations {
			kind = jsonPatch
		}
		var parts []struct{ Path, From string }
		_ = json.Unmarshal(patch, &parts)
		for _, p := range parts {
			for _, path := range []string{p.Path, p.From} {
				// Where names are empty, the library mixes up an object and what is in it, or uses the object as it was.
				if strings.Contains(path, "//") || strings.HasSuffix(path, "/") {
					return
				}
			}
		}
		if bytes.Contains(patch, []byte(`""`)) || bytes.Contains(patch, []byte(`\u`)) || bytes.ContainsAny(patch, "\r\v\f") || !json.Valid(patch) {
			return
		}
		comparePatch(t, kind, string(patch))
	})
}

func comparePatch(t *testing.T, kind hooksv1alpha1.PatchType, text string) {
	t.Helper()
	patch := &hooksv1alpha1.Patch{PatchType: kind, Patch: []byte(text)}
	want, wantErr := byLibrary(patch, []byte(patchedObject))
	got, err := apply(patch, []byte(patchedObject), &meter{})
	isObject := func(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) }
	switch {
	case errors.Is(wantErr, errPanic): // it compares null in a list with something else
	case wantErr != nil || !isObject(want):
		if err == nil && isObject(got) {
			t.Errorf("%s %s: got %s, want the error %v", kind, text, got, wantErr)
		}
	case err != nil || !cmp.Equal(mustParse(t, got), mustParse(t, want)):
		t.Errorf("%s %s: got %s, %v; want %s", kind, text, got, err, want)
	}
}

func mustParse(t *testing.T, text []byte) any {
	t.Helper()
	v, err := Guard{}.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustDiffer(t *testing.T, from, to string) []byte {
	t.Helper()
	patch, err := jsonpatch.CreateMergePatch([]byte(from), []byte(to))
	if err != nil {
		t.Fatal(err)
	}
	return patch
}

// Differences are those of the library.
func TestDifferences(t *testing.T) {
	for _, to := range []string{
		patchedObject, `{}`, `{"a":{"b":[1],"d/e":{},"g":{}},"h":[{"i":[0]}],"j":null}`, `{"a":1,"h":{},"j":"k","l":{"m":null}}`,
		`{"a":{"b":[1,{"c":null,"x":12345678901234567891},[]],"d/e":{"~":"f"},"g":null},"h":[],"j":1}`, `{"a":{"b":[1,{"c":null,"x":12345678901234567890,"y":1},[]]}}`,
	} {
		from, _ := mustParse(t, []byte(patchedObject)).(map[string]any)
		wanted, _ := mustParse(t, []byte(to)).(map[string]any)
		got, err := compose(difference(from, wanted))
		if want := mustDiffer(t, patchedObject, to); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, %v; want %s", to, got, err, want)
		}
	}
}

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
		"a path of slashes":  {hubMachine, jsonPatch, `[{"op":"add","path":"` + strings.Repeat("/", 1<<20) + `","value":1}]`, hook.BadResponse, "does not apply"},
		"many members":       {hubMachine, mergePatch, `{"metadata":{"labels":{` + members + `}}}`, 0, ""},
		"a deep list":        {inside(`"x":[` + manyTimes(30_000, "0") + `]`), jsonPatch, `[` + manyTimes(10_000, `{"op":"add","path":"/spec/x/0","value":1}`) + `]`, 0, ""},
		"copies":             {inside(`"x":[` + manyTimes(30_000, "0") + `]`), jsonPatch, `[` + manyTimes(3, `{"op":"copy","from":"/spec/x","path":"/spec/x/-"}`) + `]`, hook.BadResponse, "it has more than 50000 elements"},
		"copies of text":     {inside(`"x":[` + large + `]`), jsonPatch, `[` + manyTimes(100, `{"op":"copy","from":"/spec/x/0","path":"/spec/x/-"}`) + `]`, hook.BadResponse, "does not apply"},
		"values of the object": {strings.Replace(hubMachine, `{"a":"b"}`, `{"a":"b"},"x":[`+manyTimes(2_000_000, "1")+`]`, 1), mergePatch, `{"spec":{"version":"v2"}}`, hook.TooLarge,
			"convert current.machine to v1beta2: it has more than 50000 elements"},
		"a string without an end": {hubMachine, mergePatch, `"` + strings.Repeat(`\"`, 1<<20) + "\n", hook.BadResponse, "does not apply"},
	} {
		t.Run(name, func(t *testing.T) {
			var reserved int64
			c, err := patchObjects().RequestGuarded(Guard{Reserve: func(n int64) error { reserved += n; return nil }},
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
		"large":  {mergePatch, `{"spec":{"y":"` + strings.Repeat("y", largeText) + `"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			c, err := patchObjects().RequestGuarded(Guard{Step: ctx.Err}, machineRequest(object, object), V1Beta1)
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
