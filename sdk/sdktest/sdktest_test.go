// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdktest_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructure "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
	"github.com/hookgate/hookgate/sdk/sdktest"
)

const requests = "../../examples/requests/"

func extension() *sdk.Extension {
	x := &sdk.Extension{Logger: slog.New(slog.DiscardHandler)}
	sdk.Handle(x, "name", func(_ context.Context, in *hooks.GeneratePatchesRequest) (sdk.Answer, error) {
		patches := sdk.NewPatches(in)
		for item := range patches.Items(sdk.Match{Kind: "KubeadmControlPlaneTemplate"}) {
			name, err := sdk.Variable[string](item, "builtin.cluster.name")
			if err != nil {
				return nil, err
			}
			item.Set("/metadata/labels/cluster", name)
		}
		return patches, nil
	})
	return x
}

func TestPatched(t *testing.T) {
	in := sdktest.Request[*hooks.GeneratePatchesRequest](t, requests+"generate-patches.yaml")
	out := sdktest.Call[*hooks.GeneratePatchesResponse](t, extension(), in)
	labelled := 0
	for uid, object := range sdktest.Patched(t, in, out) {
		metadata, _ := object["metadata"].(map[string]any)
		labels, _ := metadata["labels"].(map[string]any)
		if labels["cluster"] != nil {
			labelled++
			if object["kind"] != "KubeadmControlPlaneTemplate" {
				t.Errorf("item %s: %v", uid, object)
			}
		}
	}
	if labelled != 1 || len(in.GetItems()) < 2 {
		t.Errorf("%d of %d items have the label", labelled, len(in.GetItems()))
	}
}

// Every request of the examples is one of the stubs.
func TestRequest(t *testing.T) {
	if in := sdktest.Request[*infrastructure.DeleteMachineRequest](t, requests+"delete-machine.yaml"); in.GetSubject().GetName() == "" {
		t.Errorf("read %v", in)
	}
	file := filepath.Join(t.TempDir(), "request.json")
	if err := os.WriteFile(file, []byte(`{"cluster": {"n": 9007199254740993}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if in := sdktest.Request[*hooks.BeforeClusterCreateRequest](t, file); string(in.GetCluster().GetRaw()) != `{"n": 9007199254740993}` {
		t.Errorf("read %v", in)
	}
}

// failed is a test that fails as the one of a user does, and keeps the reason.
type failed struct {
	testing.TB

	reason string
}

func (f *failed) Fatal(args ...any)                 { f.stop(fmt.Sprint(args...)) }
func (f *failed) Fatalf(format string, args ...any) { f.stop(fmt.Sprintf(format, args...)) }
func (f *failed) Helper()                           {}
func (f *failed) Context() context.Context          { return context.Background() }
func (f *failed) stop(reason string) {
	f.reason = reason
	runtime.Goexit()
}

func TestFailures(t *testing.T) {
	good := &hooks.GeneratePatchesRequest{Items: []*hooks.GeneratePatchesRequestItem{{Uid: "1", Object: &hooks.RawExtension{Raw: []byte(`{}`)}}}}
	response := func(uid, patch string) *hooks.GeneratePatchesResponse {
		return &hooks.GeneratePatchesResponse{Status: hooks.ResponseStatus_RESPONSE_STATUS_SUCCESS, Items: []*hooks.GeneratePatchesResponseItem{{
			Uid: uid, PatchType: hooks.PatchType_PATCH_TYPE_JSON_PATCH, Patch: []byte(patch),
		}}}
	}
	for name, tt := range map[string]struct {
		run  func(t *failed)
		want string
	}{
		"no file": {func(t *failed) { sdktest.Request[*hooks.BeforeClusterCreateRequest](t, "no.yaml") }, "open no.yaml: no such file or directory"},
		"no YAML": {func(t *failed) { sdktest.Request[*hooks.BeforeClusterCreateRequest](t, "sdktest_test.go") }, "sdktest_test.go: "},
		"of another hook": {func(t *failed) {
			sdktest.Request[*hooks.BeforeClusterCreateRequest](t, requests+"delete-machine.yaml")
		}, requests + "delete-machine.yaml is no BeforeClusterCreateRequest: "},
		"no such handler": {func(t *failed) {
			sdktest.Call[*hooks.GeneratePatchesResponse](t, extension(), &hooks.GeneratePatchesRequest{Handler: "x"})
		}, `no handler of GeneratePatches is named "x"`},
		"another response": {func(t *failed) { sdktest.Call[*hooks.DiscoveryResponse](t, extension(), good) }, "the answer is a *hooksv1alpha1.GeneratePatchesResponse, not a *hooksv1alpha1.DiscoveryResponse"},
		"no such item":     {func(t *failed) { sdktest.Patched(t, good, response("2", `[]`)) }, `the answer has a patch for "2", which the request does not have`},
		"bad patch":        {func(t *failed) { sdktest.Patched(t, good, response("1", `[{"op":"remove","path":"/a"}]`)) }, `the patch of item 1: `},
		"merge patch": {func(t *failed) {
			out := response("1", `{"a": 1`)
			out.Items[0].PatchType = hooks.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
			sdktest.Patched(t, good, out)
		}, "the patch of item 1: "},
		"no object": {func(t *failed) { sdktest.Patched(t, good, response("1", `[{"op":"replace","path":"","value":[]}]`)) }, "after the patches, item 1 is not an object"},
		"failure": {
			func(t *failed) {
				sdktest.Patched(t, good, &hooks.GeneratePatchesResponse{Status: hooks.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: "no"})
			},
			"the answer is RESPONSE_STATUS_FAILURE: no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, ended := &failed{TB: t}, make(chan struct{})
			go func() {
				defer close(ended)
				tt.run(f)
			}()
			<-ended
			if !strings.Contains(f.reason, tt.want) {
				t.Errorf("the test fails with %q, want %q", f.reason, tt.want)
			}
		})
	}
}

func ExampleCall() {
	t := &failed{} // the *testing.T of a test
	in := sdktest.Request[*hooks.GeneratePatchesRequest](t, requests+"generate-patches.yaml")
	out := sdktest.Call[*hooks.GeneratePatchesResponse](t, extension(), in)
	fmt.Printf("%s\n", out.GetItems()[0].GetPatch())
	// Output: [{"op":"add","path":"/metadata/labels","value":{"cluster":"payments-eu-west-1"}}]
}
