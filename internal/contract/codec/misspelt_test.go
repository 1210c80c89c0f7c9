// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

func TestMisspellings(t *testing.T) {
	c := New(catalog.New())
	for name, want := range map[string]string{
		"retry_after_seconds": "retryAfterSeconds", "RetryAfterSeconds": "", "retry-after-seconds": "retryAfterSeconds",
		"retryAfterSecond": "retryAfterSeconds", "retryAfterSecconds": "retryAfterSeconds", "retryAfterSecomds": "retryAfterSeconds",
		"Status": "", "api_version": "apiVersion", "mesage": "message", "_kind": "kind",
		"retryAfter": "", "retryAfterSec0nd": "", "ind": "", "reason": "", "hookgate.dev/via": "",
		strings.Repeat("_", 100) + "kind": "",
	} {
		var got []Misspelling
		guard := Guard{Misspelt: func(m Misspelling) { got = append(got, m) }}
		m := &hooksv1alpha1.BeforeClusterCreateResponse{}
		if _, err := c.DecodeGuarded(fmt.Appendf(nil, `{%q:null}`, name), m, guard); err != nil {
			t.Fatal(err)
		}
		decoded := slices.Clone(got)
		if err := c.CheckGuarded(m, guard); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2*len(decoded) || (want == "") != (len(got) == 0) {
			t.Errorf("%s: got %v, want %q twice", name, got, want)
		}
		for _, g := range got {
			if g != (Misspelling{"BeforeClusterCreateResponse", name, want}) {
				t.Errorf("%s: got %v, want %q", name, g, want)
			}
		}
	}
}

// TestComparisonsAreBounded holds that a body of unknown members does not cost more than a hundred comparisons.
func TestComparisonsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `"mesage%s":1,`, strings.Repeat("_", i))
	}
	n := 0
	_, err := New(catalog.New()).DecodeGuarded([]byte("{"+b.String()+`"x":1}`), &hooksv1alpha1.BeforeClusterCreateResponse{},
		Guard{Misspelt: func(Misspelling) { n++ }})
	if err != nil || n != min(maxCompared, maxNamed-len("mesage")+1) {
		t.Errorf("%d misspellings, %v", n, err)
	}
}
