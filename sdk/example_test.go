// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"fmt"
	"time"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

// An extension with one handler. Its program calls x.Serve.
func Example() {
	x := &sdk.Extension{}
	sdk.Handle(x, "require-team", func(_ context.Context, in *hooks.BeforeClusterCreateRequest) (sdk.Answer, error) {
		var cluster struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := sdk.Load(in, "cluster", &cluster); err != nil {
			return nil, err
		}
		if cluster.Metadata.Labels["team"] == "" {
			return sdk.Wait(30*time.Second, "waits for the label team"), nil
		}
		return sdk.Done(), nil
	})
	answer, err := x.Call(context.Background(), &hooks.BeforeClusterCreateRequest{Cluster: &hooks.RawExtension{Raw: []byte(`{}`)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, _ := answer.(*hooks.BeforeClusterCreateResponse)
	fmt.Println(out.GetRetryAfterSeconds(), out.GetMessage())
	// Output: 30 waits for the label team
}

func ExamplePatches() {
	in := &hooks.GeneratePatchesRequest{
		Variables: []*hooks.Variable{{Name: "imageRepository", Value: &hooks.JSON{Raw: []byte(`"registry.example.com"`)}}},
		Items: []*hooks.GeneratePatchesRequestItem{{
			Uid: "1", Object: &hooks.RawExtension{Raw: []byte(`{"kind": "KubeadmControlPlaneTemplate", "spec": {}}`)},
		}},
	}
	x := &sdk.Extension{}
	sdk.Handle(x, "images", func(_ context.Context, in *hooks.GeneratePatchesRequest) (sdk.Answer, error) {
		patches := sdk.NewPatches(in)
		for item := range patches.Items(sdk.Match{Kind: "KubeadmControlPlaneTemplate"}) {
			repository, err := sdk.Variable[string](item, "imageRepository")
			if err != nil {
				return nil, err
			}
			item.Set("/spec/imageRepository", repository)
		}
		return patches, nil
	})
	answer, err := x.Call(context.Background(), in)
	if err != nil {
		fmt.Println(err)
		return
	}
	out, _ := answer.(*hooks.GeneratePatchesResponse)
	fmt.Printf("%s\n", out.GetItems()[0].GetPatch())
	// Output: [{"op":"add","path":"/spec/imageRepository","value":"registry.example.com"}]
}
