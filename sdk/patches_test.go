// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

// patched returns the answer to items by a handler that edits them all.
func patched(t *testing.T, in *generate, edit func(item *sdk.Item)) (*generated, error) {
	t.Helper()
	return answered(t, in, func(in *generate) (sdk.Answer, error) {
		patches := sdk.NewPatches(in)
		for item := range patches.Items(sdk.Match{}) {
			edit(item)
		}
		return patches, nil
	})
}

func answered(t *testing.T, in *generate, run func(in *generate) (sdk.Answer, error)) (*generated, error) {
	t.Helper()
	x := &sdk.Extension{Logger: quiet}
	sdk.Handle(x, "h", func(_ context.Context, in *generate) (sdk.Answer, error) { return run(in) })
	out, err := x.Call(t.Context(), in)
	response, _ := out.(*generated)
	return response, err
}

func item(uid, object string, variables ...*hooks.Variable) *hooks.GeneratePatchesRequestItem {
	return &hooks.GeneratePatchesRequestItem{
		Uid: uid, Object: &hooks.RawExtension{Raw: []byte(object)}, Variables: variables,
		HolderReference: &hooks.HolderReference{Kind: "MachineDeployment"},
	}
}

// TestPatchVectors makes the patches that the packages of all languages make.
func TestPatchVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/patches.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name   string
		Object json.RawMessage
		Edit   []struct {
			Set, Remove *string
			Value       any
		}
		Edited map[string]any
		Want   []struct {
			Op, Path string
			Value    any
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 40 {
		t.Fatalf("%d vectors", len(vectors))
	}
	for _, v := range vectors {
		if n := len(v.Want); v.Name == "the order of operations" { // maps of Go have none: new members come in that of their names
			v.Want[n-2], v.Want[n-1] = v.Want[n-1], v.Want[n-2]
		}
		t.Run(v.Name, func(t *testing.T) {
			out, err := patched(t, &generate{Items: []*hooks.GeneratePatchesRequestItem{item("1", string(v.Object))}}, func(i *sdk.Item) {
				for _, e := range v.Edit {
					if e.Set != nil {
						i.Set(*e.Set, e.Value)
					} else {
						i.Remove(*e.Remove)
					}
				}
				if v.Edited != nil {
					object := i.Object()
					clear(object)
					maps.Copy(object, v.Edited)
				}
			})
			if err != nil || out.GetStatus() != success {
				t.Fatal(out, err)
			}
			got := v.Want[:0:0]
			if len(out.GetItems()) > 0 {
				decoder := json.NewDecoder(bytes.NewReader(out.GetItems()[0].GetPatch()))
				decoder.UseNumber()
				if err := decoder.Decode(&got); err != nil {
					t.Fatal(err)
				}
				if len(got) == 0 {
					t.Error("there is a patch without operations")
				}
			}
			if diff := cmp.Diff(v.Want, got); diff != "" && len(v.Want)+len(got) > 0 {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An error of an item is the answer in place of the patches.
func TestPatchErrors(t *testing.T) {
	const object = `{"kind":"A","s":"x","l":[1]}`
	for name, tt := range map[string]struct {
		object string
		edit   func(item *sdk.Item)
		want   string // INVALID_ARGUMENT if the request is wrong
	}{
		"not JSON":         {`{"kind":`, func(i *sdk.Item) { i.Set("/a", 1) }, "items[0].object: the JSON ends early"},
		"no object":        {`[]`, func(i *sdk.Item) { i.Object() }, "items[0].object: want a JSON object"},
		"nothing":          {``, func(i *sdk.Item) { i.Remove("/a") }, "items[0].object: want a JSON object"},
		"two objects":      {`{} {}`, func(i *sdk.Item) { i.Remove("/a") }, "items[0].object: there is more than one JSON value"},
		"NaN":              {`{"n":NaN}`, func(i *sdk.Item) { i.Remove("/a") }, "items[0].object: invalid character 'N' looking for beginning of value"},
		"too deep":         {`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`, func(i *sdk.Item) { i.Object() }, "items[0].object: invalid character '[' exceeded max depth"},
		"below a text":     {object, func(i *sdk.Item) { i.Set("/s/a", 1) }, `Failure: items[0].object: set "/s/a": "/s" is neither an object nor a list`},
		"no element":       {object, func(i *sdk.Item) { i.Set("/l/2", 1) }, `Failure: items[0].object: set "/l/2": the list "/l" has no element "2"`},
		"no index":         {object, func(i *sdk.Item) { i.Set("/l/01", 1) }, `Failure: items[0].object: set "/l/01": the list "/l" has no element "01"`},
		"no pointer":       {object, func(i *sdk.Item) { i.Set("spec", 1) }, `Failure: handler "h": internal error (*errors.errorString); search the log of the extension for the call's id`},
		"empty pointer":    {object, func(i *sdk.Item) { i.Remove("") }, `Failure: handler "h": internal error (*errors.errorString); search the log of the extension for the call's id`},
		"bad escape":       {object, func(i *sdk.Item) { i.Remove("/a~2") }, `Failure: handler "h": internal error (*errors.errorString); search the log of the extension for the call's id`},
		"no value of JSON": {object, func(i *sdk.Item) { i.Set("/a", func() {}) }, `Failure: handler "h": internal error (*fmt.wrapError); search the log of the extension for the call's id`},
		"no member of JSON": {
			object, func(i *sdk.Item) { i.Object()["a"] = make(chan int) },
			`Failure: handler "h": internal error (*fmt.wrapError); search the log of the extension for the call's id`,
		},
		"the first of several": {object, func(i *sdk.Item) {
			i.Set("/s/a", 1)
			i.Set("/l/9", 1)
		}, `Failure: items[0].object: set "/s/a": "/s" is neither an object nor a list`},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := patched(t, &generate{Items: []*hooks.GeneratePatchesRequestItem{item("1", tt.object)}}, tt.edit)
			got := "Failure: " + out.GetMessage()
			if err != nil {
				got = status.Convert(err).Message()
				if status.Code(err) != codes.InvalidArgument {
					t.Errorf("status %s", status.Code(err))
				}
			} else if out.GetStatus() != failure || len(out.GetItems()) > 0 {
				t.Errorf("answered %v", out)
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Only the items that match are looked at, and only those that differ have a patch.
func TestMatches(t *testing.T) {
	in := &generate{Items: []*hooks.GeneratePatchesRequestItem{
		item("a", `{"apiVersion":"g.io/v1","kind":"A"}`), item("b", `{"apiVersion":"g.io/v1","kind":"B"}`),
		item("c", `{"apiVersion":"v1","kind":"A"}`), {Uid: "d", Object: &hooks.RawExtension{Raw: []byte("not JSON")}},
	}}
	for name, tt := range map[string]struct {
		match sdk.Match
		want  string
	}{
		"holder and kind":   {sdk.Match{Kind: "A", HolderKind: "MachineDeployment"}, "a c"},
		"group":             {sdk.Match{Group: "g.io", HolderKind: "MachineDeployment"}, "a b"},
		"none":              {sdk.Match{HolderKind: "Cluster"}, ""},
		"group and kind":    {sdk.Match{Group: "g.io", Kind: "B", HolderKind: "MachineDeployment"}, "b"},
		"of no group":       {sdk.Match{Group: "v1", HolderKind: "MachineDeployment"}, ""},
		"kind, of them all": {sdk.Match{Kind: "B"}, "INVALID items[3].object: want a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := answered(t, in, func(in *generate) (sdk.Answer, error) {
				patches := sdk.NewPatches(in)
				for item := range patches.Items(tt.match) {
					item.Set("/x", true)
				}
				if name == "none" && patches.Err() != nil {
					t.Error(patches.Err())
				}
				return patches, nil
			})
			var uids []string
			for _, i := range out.GetItems() {
				uids = append(uids, i.GetUid())
			}
			got := strings.Join(uids, " ")
			if err != nil {
				got = "INVALID " + status.Convert(err).Message()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	machine := func(text string) *hooks.CanUpdateMachineRequestObjects {
		return &hooks.CanUpdateMachineRequestObjects{Machine: &hooks.RawExtension{Raw: []byte(text)}}
	}
	for name, tt := range map[string]struct {
		current, desired string
		paths            []string
		want             string
	}{
		"a value":            {`{"spec":{"version":"1","x":1}}`, `{"spec":{"version":"2","x":2}}`, []string{"/spec/version"}, `{"spec":{"version":"2"}}`},
		"nothing":            {`{"spec":{"version":1}}`, `{"spec":{"version":1.0,"x":2}}`, []string{"/spec/version"}, ``},
		"removed":            {`{"spec":{"a":1}}`, `{"spec":{}}`, []string{"/spec/a"}, `{"spec":{"a":null}}`},
		"parent removed":     {`{"spec":{"a":1}}`, `{}`, []string{"/spec/a"}, `{"spec":{"a":null}}`},
		"parent added":       {`{}`, `{"spec":{"a":9007199254740993}}`, []string{"/spec/a"}, `{"spec":{"a":9007199254740993}}`},
		"object":             {`{"s":{"a":1,"b":{"c":1,"d":1},"n":null}}`, `{"s":{"b":{"c":2,"d":1},"e":"<&>"}}`, []string{"/s"}, `{"s":{"a":null,"b":{"c":2},"e":"<&>"}}`},
		"list as a whole":    {`{"l":[1]}`, `{"l":[1,2]}`, []string{"/l"}, `{"l":[1,2]}`},
		"one in another":     {`{"s":{"a":1,"b":2}}`, `{}`, []string{"/s/a", "/s"}, `{"s":null}`},
		"names beside":       {`{"s":{"a":1},"s-b":1}`, `{"s":{"a":2},"s-b":2}`, []string{"/s", "/s-b", "/s/a"}, `{"s":{"a":2},"s-b":2}`},
		"element":            {`{"l":[1]}`, `{"l":[2]}`, []string{"/l/0"}, `Failure: covers: machine: "/l" is a list: cover the whole list, not "/l/0"`},
		"through a list":     {`{}`, `{"l":[{"a":1}]}`, []string{"/l/0/a"}, `Failure: covers: machine: "/l" is a list: cover the whole list, not "/l/0/a"`},
		"no pointer":         {`{}`, `{}`, []string{"spec"}, `Failure: handler "h": internal error (*errors.errorString); search the log of the extension for the call's id`},
		"current not JSON":   {`{`, `{}`, []string{"/a"}, `INVALID current.machine: the JSON ends early`},
		"desired not object": {`{}`, `null`, []string{"/a"}, `INVALID desired.machine: want a JSON object`},
	} {
		t.Run(name, func(t *testing.T) {
			x := &sdk.Extension{Logger: quiet}
			sdk.HandleResponse(x, "h", func(_ context.Context, in *hooks.CanUpdateMachineRequest) (*hooks.CanUpdateMachineResponse, error) {
				return sdk.Covers[*hooks.CanUpdateMachineResponse](in, sdk.Paths{"machine": tt.paths, "bootstrap_config": {"/spec"}})
			})
			answer, err := x.Call(t.Context(), &hooks.CanUpdateMachineRequest{Current: machine(tt.current), Desired: machine(tt.desired)})
			out, _ := answer.(*hooks.CanUpdateMachineResponse)
			got := string(out.GetMachinePatch().GetPatch())
			switch {
			case err != nil:
				got = "INVALID " + status.Convert(err).Message()
			case out.GetStatus() == failure:
				got = "Failure: " + out.GetMessage()
			case got != "" && out.GetMachinePatch().GetPatchType() != hooks.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, out.GetBootstrapConfigPatch() != nil:
				t.Errorf("answered %v", out)
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// The members of a MachineSet have other names, and a wrong one is said.
func TestCoversOfAMachineSet(t *testing.T) {
	objects := func(text string) *hooks.CanUpdateMachineSetRequestObjects {
		raw := &hooks.RawExtension{Raw: []byte(text)}
		return &hooks.CanUpdateMachineSetRequestObjects{MachineSet: raw, InfrastructureMachineTemplate: raw, BootstrapConfigTemplate: raw}
	}
	in := &hooks.CanUpdateMachineSetRequest{Current: objects(`{"a":1}`), Desired: objects(`{"a":2}`)}
	got, err := sdk.Covers[*hooks.CanUpdateMachineSetResponse](in, sdk.Paths{
		"machine_set": {"/a"}, "infrastructure_machine_template": {"/a"}, "bootstrap_config_template": {"/b"},
	})
	patch := &hooks.Patch{PatchType: hooks.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, Patch: []byte(`{"a":2}`)}
	want := &hooks.CanUpdateMachineSetResponse{Status: success, MachineSetPatch: patch, InfrastructureMachineTemplatePatch: patch}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	_, err = sdk.Covers[*hooks.CanUpdateMachineSetResponse](in, sdk.Paths{"machine": {"/a"}})
	if err == nil || err.Error() != `CanUpdateMachineSetRequest and CanUpdateMachineSetResponse have no object "machine"` {
		t.Error(err)
	}
	if _, err = sdk.Covers[*generated](&generate{}, nil); err == nil || err.Error() != "GeneratePatchesRequest has no objects named current and desired" {
		t.Error(err)
	}
}
