// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"encoding/json"
	"fmt"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/test/samples"
)

// BenchmarkPatches is the work on the templates of M in a chain of five steps, each of which patches all of them.
func BenchmarkPatches(b *testing.B) {
	var m struct {
		Items []struct {
			UID    string
			Object json.RawMessage
		}
	}
	if err := json.Unmarshal(samples.M(), &m); err != nil {
		b.Fatal(err)
	}
	req := &hooksv1alpha1.GeneratePatchesRequest{}
	for _, item := range m.Items {
		req.Items = append(req.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			Uid: item.UID, Object: &hooksv1alpha1.RawExtension{Raw: item.Object},
		})
	}
	for kind, format := range map[hooksv1alpha1.PatchType]string{
		jsonPatch:  `[{"op":"add","path":"/spec/template/spec/step%d","value":"v1"}]`,
		mergePatch: `{"spec":{"template":{"spec":{"step%d":"v1"}}}}`,
	} {
		answers := make([]*hooksv1alpha1.GeneratePatchesResponse, 5)
		for i := range answers {
			answers[i] = &hooksv1alpha1.GeneratePatchesResponse{}
			for _, item := range req.GetItems() {
				answers[i].Items = append(answers[i].Items, &hooksv1alpha1.GeneratePatchesResponseItem{
					Uid: item.GetUid(), PatchType: kind, Patch: fmt.Appendf(nil, format, i),
				})
			}
		}
		b.Run(kind.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p := NewPatches(req, jsonpatch.Guard{})
				for i, answer := range answers {
					if err := p.Add(answer); err != nil {
						b.Fatal(err)
					}
					if i+1 < len(answers) {
						p.Request()
					}
				}
			}
		})
	}
}
