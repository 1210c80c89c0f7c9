// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/contract/convert"
)

const definitionHead = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"

func TestDecodeDefinition(t *testing.T) {
	cases := map[string]struct {
		reason   string
		content  string
		want     *convert.CRD
		problems []string
	}{
		"AsPublished": {
			reason: "Everything but name and labels is ignored, whatever it is.",
			content: definitionHead + "metadata:\n  annotations: {controller-gen.kubebuilder.io/version: [odd]}\n  creationTimestamp: null\n  name: acmeclusters.infrastructure.cluster.x-k8s.io\n" +
				"  novel: 1\n  labels:\n    cluster.x-k8s.io/v1beta1: v1alpha3_v1beta1\n    other: x\nspec: {group: [], versions: 7, novel: {}}\nstatus: none\n",
			want: &convert.CRD{Name: "acmeclusters.infrastructure.cluster.x-k8s.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha3_v1beta1", "other": "x"}},
		},
		"Merged": {
			reason:  "YAML may put members together.",
			content: definitionHead + "spec: {x: &m {metadata: {name: as.b}}}\n<<: *m\n",
			want:    &convert.CRD{Name: "as.b"},
		},
		"NoName":         {reason: "It cannot be said which it is.", content: definitionHead + "metadata: {labels: {a: b}}\n", problems: []string{`3: CustomResourceDefinition: metadata.name: Required value: must be the plural of the kind, a dot, and the group`}},
		"NoMetadata":     {reason: "As above.", content: definitionHead, problems: []string{`1: CustomResourceDefinition: metadata.name: Required value: must be the plural of the kind, a dot, and the group`}},
		"NoGroup":        {reason: "References name the group.", content: definitionHead + "metadata:\n  name: acmeclusters\n", problems: []string{`4: CustomResourceDefinition "acmeclusters": metadata.name: Invalid value: "acmeclusters": must be the plural of the kind, a dot, and the group`}},
		"Metadata":       {reason: "Each type has its words.", content: definitionHead + "metadata: 3\n", problems: []string{`3: CustomResourceDefinition: metadata: Invalid type: number, must be a mapping`}},
		"LabelsOfAList":  {reason: "Each type has its words.", content: definitionHead + "metadata:\n  name: as.b\n  labels: [a]\n", problems: []string{`5: CustomResourceDefinition "as.b": metadata.labels: Invalid type: list, must be a mapping`}},
		"LabelOfANumber": {reason: "The line is the label's.", content: definitionHead + "metadata:\n  name: as.b\n  labels:\n    x: z\n    cluster.x-k8s.io/v1beta1: 1\n", problems: []string{`7: CustomResourceDefinition "as.b": metadata.labels[cluster.x-k8s.io/v1beta1]: Invalid type: number, must be a string; put it in quotes`}},
		"LabelOfNoValue": {
			reason: "The API server would refuse it.", content: definitionHead + "metadata:\n  name: as.b\n  labels:\n    cluster.x-k8s.io/v1beta1: v1, v2\n",
			problems: []string{`5: CustomResourceDefinition "as.b": metadata.labels: Invalid value: "v1, v2": `},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, problems := decodeAll(t, tc.content)
			var got *convert.CRD
			if len(objects) == 1 {
				got = objects[0].Contracts
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if len(problems) != len(tc.problems) {
				t.Fatalf("%s\nproblems are %q, want %q", tc.reason, problems, tc.problems)
			}
			for i := range problems {
				if !strings.HasPrefix(problems[i], "configs/acme.yaml:"+tc.problems[i]) {
					t.Errorf("%s\ngot  %s\nwant %s", tc.reason, problems[i], tc.problems[i])
				}
			}
		})
	}
}

// What a provider publishes is a few megabytes in one file.
func BenchmarkDefinitionsOfAProvider(b *testing.B) {
	var text strings.Builder
	for i := range 40 {
		fmt.Fprintf(&text, "---\n%smetadata:\n  name: k%ds.infrastructure.cluster.x-k8s.io\n  labels: {cluster.x-k8s.io/v1beta2: v1}\nspec:\n", definitionHead, i)
		for line := range 2500 {
			fmt.Fprintf(&text, "  property%d:\n    description: What stands here is as long as usual, or so.\n    type: string\n", line)
		}
	}
	b.SetBytes(int64(text.Len()))
	words := newDecoder(b)
	for b.Loop() {
		found, problems := (&Inventory{}).Next([]File{{file: "d/a.yaml", content: []byte(text.String())}}, words)
		if len(found.Of(Definition)) != 40 || len(problems) > 0 {
			b.Fatalf("%d definitions, %v", len(found.Of(Definition)), problems)
		}
	}
}
