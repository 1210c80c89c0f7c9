// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructure "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	machines "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/sdk"
	"github.com/hookgate/hookgate/sdk/sdktest"
)

// The module for authors imports nothing of the gateway's. What both have to know is compared here.

// TestRequirements counts what an extension in Go requires, and with the packages for tests. test/scaffold does so from
// outside, with a release.
func TestRequirements(t *testing.T) {
	for dir, most := range map[string]int{"gen/go": 6, "examples/go": 15, "sdk": 20} {
		all := required(t, dir)
		if len(all) > most {
			t.Errorf("%s/go.mod requires %d modules, want %d at most", dir, len(all), most)
		}
		for path := range all {
			own := path == product+"gen/go" || path == product+"sdk" && dir == "examples/go"
			if !own && strings.HasPrefix(path+"/", product) || strings.Contains(path, "k8s.io/api") {
				t.Errorf("%s/go.mod requires %s", dir, path)
			}
		}
	}
}

func answer[Req proto.Message](context.Context, Req) (sdk.Answer, error) { return sdk.Done(), nil }

// TestGroupsOfExtensions lists a handler of each group, one of which is neither Cluster API's nor the project's.
func TestGroupsOfExtensions(t *testing.T) {
	all, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	x := &sdk.Extension{Groups: map[string]string{"acme.dns.v1alpha1": "dns.acme.example"}, Logger: slog.New(slog.DiscardHandler)}
	sdk.Handle(x, "upgrade", answer[*hooks.BeforeClusterUpgradeRequest])
	sdk.Handle(x, "machine", answer[*infrastructure.DeleteMachineRequest])
	sdk.Handle(x, "drained", answer[*machines.BeforeMachineDrainRequest])
	sdk.Handle(x, "records", answer[*dnsv1alpha1.EnsureRecordRequest])
	found := 0
	for _, in := range []proto.Message{
		&hooks.DiscoveryRequest{}, &infrastructure.DiscoverInfrastructureRequest{}, &machines.DiscoverMachineHooksRequest{}, &dnsv1alpha1.DiscoverDNSRequest{},
	} {
		out, err := x.Call(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range out.(interface {
			GetHandlers() []*hooks.ExtensionHandler
		}).GetHandlers() {
			found++
			got := h.GetRequestHook()
			want := "dns.acme.example/v1alpha1"
			for _, known := range all.Hooks() {
				if known.Hook == got.GetHook() {
					want = known.APIVersion()
				}
			}
			if got.GetApiVersion() != want {
				t.Errorf("%s is of %s, want %s", got.GetHook(), got.GetApiVersion(), want)
			}
		}
	}
	if found != 4 {
		t.Errorf("found %d handlers, want 4", found)
	}
	in := sdktest.Request[*dnsv1alpha1.EnsureRecordRequest](t, "../../examples/own-hooks/record.yaml")
	if in.GetName() != "payments-eu-west-1.clusters.acme.example" || !strings.Contains(string(in.GetCluster().GetRaw()), `"team-payments"`) {
		t.Errorf("read %v", in)
	}
	y := &sdk.Extension{}
	sdk.Handle(y, "a", answer[*dnsv1alpha1.EnsureRecordRequest])
	if want := `handler "a": no known group of hooks has the proto package acme.dns.v1alpha1: name the group in Extension.Groups`; y.Err() == nil || y.Err().Error() != want {
		t.Errorf("got %v, want %s", y.Err(), want)
	}
}

func TestMessageBytes(t *testing.T) {
	if sdk.MessageBytes != limits.BodyBytes {
		t.Errorf("extensions take %d bytes, and the gateway %d", sdk.MessageBytes, limits.BodyBytes)
	}
}

// TestPatchOfAnEmptyName applies a patch as the gateway does: the library in the fuzz test of package sdk takes an empty
// name in a path for the whole object.
func TestPatchOfAnEmptyName(t *testing.T) {
	x := &sdk.Extension{Logger: slog.New(slog.DiscardHandler)}
	sdk.Handle(x, "a", func(_ context.Context, in *hooks.GeneratePatchesRequest) (sdk.Answer, error) {
		patches := sdk.NewPatches(in)
		for item := range patches.Items(sdk.Match{}) {
			item.Set("//~1", "y")
			item.Remove("//~01")
		}
		return patches, nil
	})
	before := []byte(`{"":{"~1":"x"}}`)
	out, err := x.Call(t.Context(), &hooks.GeneratePatchesRequest{Items: []*hooks.GeneratePatchesRequestItem{{Uid: "1", Object: &hooks.RawExtension{Raw: before}}}})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := new(jsonpatch.Meter).Parse(before)
	if err != nil {
		t.Fatal(err)
	}
	patch := out.(*hooks.GeneratePatchesResponse).GetItems()[0]
	if tree, err = jsonpatch.Apply(tree, patch.GetPatchType(), patch.GetPatch(), new(jsonpatch.Meter)); err != nil {
		t.Fatalf("%s: %v", patch.GetPatch(), err)
	}
	if got := string(jsonpatch.Append(nil, tree)); got != `{"":{"/":"y"}}` {
		t.Errorf("%s makes %s", patch.GetPatch(), strings.TrimSpace(got))
	}
}
