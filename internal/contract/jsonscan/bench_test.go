// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/hookgate/hookgate/test/samples"
)

// BenchmarkScan validates the samples of the benchmarks, compact as Cluster API sends them and indented, beside
// encoding/json.
func BenchmarkScan(b *testing.B) {
	var indented bytes.Buffer
	if err := json.Indent(&indented, samples.M(), "", "  "); err != nil {
		b.Fatal(err)
	}
	texts := []struct {
		size string
		text []byte
	}{{"S", samples.S()}, {"M", samples.M()}, {"L", samples.L()}, {"Indented", indented.Bytes()}}
	for _, tc := range texts {
		b.Run(tc.size+"/json.Valid", func(b *testing.B) {
			b.SetBytes(int64(len(tc.text)))
			for b.Loop() {
				if !json.Valid(tc.text) {
					b.Fatal("not valid")
				}
			}
		})
		b.Run(tc.size+"/Scanner", func(b *testing.B) {
			b.SetBytes(int64(len(tc.text)))
			for b.Loop() {
				if err := valid(tc.text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
