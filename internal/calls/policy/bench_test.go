// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/hookgate/hookgate/test/samples"
)

// BenchmarkConditions is what conditions cost for the small body, a BeforeClusterCreate with a full Cluster, and for
// bodies of GeneratePatches: the first time, as in most calls, and again for another handler of the same call.
func BenchmarkConditions(b *testing.B) {
	for _, bench := range []struct {
		name, expression string
		body             []byte
	}{
		{"name", `request.cluster.metadata.namespace != 'kube-system'`, samples.S()},
		{
			"labels",
			`has(request.cluster.metadata.labels) && request.cluster.metadata.labels.exists(k, k.startsWith('cluster'))`,
			samples.S(),
		},
		{
			"regex",
			`request.cluster.metadata.name.matches('^[a-z][-a-z0-9]*$') && request.cluster.kind in ['Cluster', 'ClusterClass']`,
			samples.S(),
		},
		{"variableM", `request.variables.exists(v, v.name == 'builtin')`, samples.M()},
		{"itemsM", `request.items.exists(i, i.holderReference.kind == 'None')`, samples.M()},
		{"itemsL", `request.items.exists(i, i.holderReference.kind == 'None')`, samples.L()},
	} {
		c := compiled(b, bench.expression)
		b.Run("first/match="+bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Match(b.Context(), NewRequest(bench.body, Guard{})); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("again/match="+bench.name, func(b *testing.B) {
			request := NewRequest(bench.body, Guard{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Match(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("compile", func(b *testing.B) {
		c := compiler(b)
		b.ReportAllocs()
		for b.Loop() {
			if _, errs := c.Compile([]Condition{{Name: "a", Expression: `request.cluster.metadata.name == 'c1'`}}); errs != nil {
				b.Fatal(errs)
			}
		}
	})
}
