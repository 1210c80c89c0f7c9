// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Names that fit stay as they are. Longer ones become names that the API server takes, and stay different.
func TestRecordName(t *testing.T) {
	longest := "rule." + strings.Repeat("r", 253-len("rule..c1")) + ".c1"
	for _, name := range []string{"rule.upgrades.c1", longest} {
		if got := RecordName(name); got != name {
			t.Errorf("%q has the name %q", name, got)
		}
	}
	seen := map[string]bool{}
	for _, name := range []string{
		longest + "1", longest + "2", strings.Repeat("r", 600),
		strings.Repeat("r", 235) + "." + strings.Repeat("c", 63), // it is cut behind the dot
		strings.Repeat("r", 234) + "-." + strings.Repeat("c", 63),
	} {
		got := RecordName(name)
		if problems := validation.IsDNS1123Subdomain(got); len(problems) > 0 || len(got) < 230 || seen[got] {
			t.Errorf("%q has the name %q, problems %v, of another %t", name, got, problems, seen[got])
		}
		seen[got] = true
	}
}
