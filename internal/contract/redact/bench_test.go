// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"os"
	"testing"
)

func BenchmarkText(b *testing.B) {
	corpus, err := os.ReadFile("testdata/ordinary.txt")
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"Message": `handler "v.acme": call extension: connection refused`,
		"Naming":  `Cluster n/c: waiting for the certificate key and the token of "acme": not yet available`,
		"Secret":  "login failed: password=hunter2 for user bob",
		"Corpus":  string(corpus),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Text(text)
			}
		})
	}
}
