// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestLabel(t *testing.T) {
	for name, tc := range map[string]struct{ reason, name, want string }{
		"short":   {"the dot becomes two hyphens", "v.acme", "v--acme"},
		"handler": {"two hyphens in the handler's name are ambiguous", "v--w.acme", "v--w--acme-da970fd4"},
		"config":  {"two hyphens in the ExtensionConfig's name are, too", "v.acme--x", "v--acme--x-dc4a6cbc"},
		"longest": {
			"63 characters fit", strings.Repeat("a", 31) + "." + strings.Repeat("b", 30),
			strings.Repeat("a", 31) + "--" + strings.Repeat("b", 30),
		},
		"too long": {
			"64 do not", strings.Repeat("a", 31) + "." + strings.Repeat("b", 31),
			strings.Repeat("a", 31) + "--" + strings.Repeat("b", 21) + "-",
		},
		"very long": {"a handler's name alone can be too long", strings.Repeat("a", 63) + ".b", strings.Repeat("a", 54) + "-"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Label(tc.name)
			if !strings.HasPrefix(got, tc.want) || (!strings.HasSuffix(tc.want, "-") && got != tc.want) {
				t.Errorf("%s: Label(%q) = %q, want %q", tc.reason, tc.name, got, tc.want)
			}
		})
	}
}

// randomName returns a DNS-1123 label, often with hyphens, and often one that is nearly another.
func randomName(r *rand.Rand) string {
	const letters = "ab0-"
	n := 1 + r.IntN(6)
	if r.IntN(4) == 0 {
		n = 20 + r.IntN(44)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	for _, end := range []int{0, n - 1} {
		if b[end] == '-' {
			b[end] = 'z'
		}
	}
	return string(b)
}

func TestLabelsOfRandomNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	owner := map[string]string{}
	for range 20_000 {
		handler, config := randomName(r), randomName(r)
		name := handler + "." + config
		label := Label(name)
		if wrong := validation.IsDNS1123Label(label); len(wrong) > 0 {
			t.Fatalf("Label(%q) = %q: %v", name, label, wrong)
		}
		if !strings.Contains(label, "-") {
			t.Fatalf("Label(%q) = %q can be the name of a hook", name, label)
		}
		if label != Label(name) {
			t.Fatalf("Label(%q) varies", name)
		}
		if other, ok := owner[label]; ok && other != name {
			t.Fatalf("%q and %q have the same label %q", name, other, label)
		}
		owner[label] = name
		h, c, ok := splitLabel(label)
		if ok && !hashed(handler, config) && (h != handler || c != config) {
			t.Fatalf("splitLabel(%q) = %q, %q", label, h, c)
		}
		if !ok && !hashed(handler, config) {
			t.Fatalf("splitLabel(%q) does not find %q", label, name)
		}
	}
}
