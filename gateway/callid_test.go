// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"
)

func TestCallIDs(t *testing.T) {
	longest := strings.Repeat("x", 64)
	for proposed, taken := range map[string]bool{
		"my-call": true, "A.b_9-z": true, longest: true, "": false, longest + "x": false, "a b": false, "a/b": false, "ä": false, "a\n": false, "a:": false,
		"`": false, "{": false, "@": false, "[": false, "Z": true, "a": true, "0": true,
	} {
		if got := callIDOr(proposed); (got == proposed) != taken || got == "" || len(got) > 64 {
			t.Errorf("%q becomes %q", proposed, got)
		}
	}
	if first, second := callIDOr(""), callIDOr(""); first == second {
		t.Error("two calls have the same id")
	}
}
