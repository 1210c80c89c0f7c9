// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/hookgate/hookgate/internal/calls/policy"
)

// TestValuesThatAreMissing wants to know which expressions are true, or false, because x is missing and y is empty.
func TestValuesThatAreMissing(t *testing.T) {
	const equal, differ = `object.?x.orValue("") == object.y`, `object.a["y"] != object.?x.orValue("")`
	for source, want := range map[string]struct{ isTrue, isFalse bool }{
		equal:                                            {isTrue: true},
		differ:                                           {isFalse: true},
		"!(" + equal + ")":                               {isFalse: true},
		"object.z || " + equal:                           {isTrue: true},
		"object.z && " + differ:                          {isFalse: true},
		`object.y != "" && ` + equal:                     {}, // is guarded
		`object.y == "" || ` + differ:                    {},
		`[1].exists(i, ` + equal + `)`:                   {},
		`object.?x.orValue("") == "yes"`:                 {},
		`object.?x.orValue("-") == object.y`:             {},
		`object.?x.orValue("") == "v" + object.y`:        {},
		`object.?x.orValue("") == object.?y.orValue("")`: {isTrue: true},
	} {
		e, err := expression(t, source, policy.Bool)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if e.TrueIfMissing != want.isTrue || e.FalseIfMissing != want.isFalse {
			t.Errorf("%s: true if missing: %t, false if missing: %t", source, e.TrueIfMissing, e.FalseIfMissing)
		}
	}
}
