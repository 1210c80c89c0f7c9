// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"testing"
)

// A request down to a version and its answer up: what a conversion adds to a call.
func BenchmarkConvert(b *testing.B) {
	c := New()
	converter := NewConverter(c)
	hub, _ := c.ByName(BeforeNodeDrain)
	for name, version := range map[string]string{"none": "v1", "derived": "v1beta1", "by hand": "v1alpha1"} {
		b.Run(name, func(b *testing.B) {
			h, _ := hub.In(version)
			req, resp := requestOf("v1", BeforeNodeDrain, "drain"), responseOf(version, BeforeNodeDrain)
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := converter.ConvertRequest(req, hub, h); err != nil {
					b.Fatal(err)
				}
				if _, _, err := converter.ConvertResponse(resp, h, hub); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
