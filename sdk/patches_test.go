// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
					for name, value := range v.Edited {
						object[name] = value
					}
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
