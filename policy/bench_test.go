// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/hookgate/hookgate/test/samples"
)

// BenchmarkConditions is what conditions cost for the small body, a BeforeClusterCreate with a full Cluster: reading
// the request, once for all handlers of a call that have conditions, and looking at it, once for each.
func BenchmarkConditions(b *testing.B) {
	body := samples.S()
	request := decoded(b, string(body))
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := Decode(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, bench := range []struct{ name, expression string }{
		{"name", `request.cluster.metadata.namespace != 'kube-system'`},
		{
			"labels",
			`has(request.cluster.metadata.labels) && request.cluster.metadata.labels.exists(k, k.startsWith('cluster'))`,
		},
		{
			"regex",
			`request.cluster.metadata.name.matches('^[a-z][-a-z0-9]*$') && request.cluster.kind in ['Cluster', 'ClusterClass']`,
		},
	} {
		c := compiled(b, bench.expression)
		b.Run("match="+bench.name, func(b *testing.B) {
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
