// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

const (
	jsonPatch  = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	mergePatch = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
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

// Whatever the library makes of an object, Apply makes as well, and it fails where the library does.
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
	for _, object := range []any{mustParse(t, []byte(patchedObject)), Raw(patchedObject)} {
		var got []byte
		patched, err := Apply(object, kind, patch.GetPatch(), &Meter{})
		if err == nil {
			got = Append(nil, patched)
		}
		comparePatched(t, kind, text, got, err, want, wantErr)
	}
}

func comparePatched(t *testing.T, kind hooksv1alpha1.PatchType, text string, got []byte, err error, want []byte, wantErr error) {
	t.Helper()
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

// A patch is within places if it changes what they name, whatever its own names have in them.
func TestWithin(t *testing.T) {
	for text, want := range map[string]bool{
		`[{"op":"add","path":"/spec/template/spec/a","value":1},{"op":"test","path":"/kind","value":"x"}]`: true,
		`[{"op":"replace","path":"/spec/template/spec","value":{}}]`:                                       true,
		`[{"op":"remove","path":"/spec/template/spec"}]`:                                                   false,
		`[{"op":"add","path":"/spec/template/specs","value":1}]`:                                           false,
		`[{"op":"add","path":"/spec/template/spec~1a","value":1}]`:                                         false,
		`[{"op":"add","path":"/spec~1template/spec/a","value":1}]`:                                         false,
		`[{"op":"move","path":"/spec/template/spec/a","from":"/spec/template"}]`:                           false,
		`{"spec":{"template":{"spec":{"a":null}}}}`:                                                        true,
		`{"spec":{"template":{"spec":null}}}`:                                                              false,
		`{"spec":{"template":{"metadata":{}}}}`:                                                            false,
		`{"spec/template/spec":{"a":1}}`:                                                                   false,
		`{"spec":{"template/spec":{"a":1}}}`:                                                               false,
	} {
		kind := mergePatch
		if text[0] == '[' {
			kind = jsonPatch
		}
		if got := Within(kind, mustParse(t, []byte(text)), []string{"/spec/template/spec"}); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
}

func mustParse(t *testing.T, text []byte) any {
	t.Helper()
	v, err := Guard{}.Parse(text)
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
		got, err := Compose(Difference(from, wanted))
		if want := mustDiffer(t, patchedObject, to); err != nil || string(got) != string(want) {
			t.Errorf("%s: got %s, %v; want %s", to, got, err, want)
		}
	}
}
