// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package via

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// behind returns a path through n gateways.
func behind(n int) Path {
	var p Path
	for range n {
		p = p.Through(NewGateway())
	}
	return p
}

func TestPathCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		path Path
		ok   bool
	}{
		"None":      {"", true},
		"One":       {"a", true},
		"AtLimit":   {behind(limits.GatewayHops), true},
		"Beyond":    {behind(limits.GatewayHops + 1), false},
		"EmptyID":   {"a,,b", false},
		"Space":     {"a, b", false},
		"Control":   {"a\x1b", false},
		"IDAtLimit": {Path(strings.Repeat("a", maxID)), true},
		"IDBeyond":  {Path(strings.Repeat("a", maxID+1)), false},
		"TooLong":   {Path(strings.Repeat("a,", 1<<20)), false},
	} {
		if err := tc.path.Check(); (err == nil) != tc.ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestPathRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		path Path
		way  Way
		want bool
	}{
		"NoGateway":    {Path("").Through("b").Through("a"), "", false},
		"Extension":    {"", Way("").Next("a", ""), false},
		"Others":       {Path("").Through("b").Through("a"), Way("").Next("c", ""), false},
		"Near":         {Path("").Through("b").Through("a"), Way("").Next("a", ""), true},
		"Far":          {Path("").Through("b").Through("a"), Way("").Next("b", ""), true},
		"Handler":      {"b", Way("").Next("c", "h.x").Next("b", "i.y"), true},
		"PartOfAnID":   {"bb", Way("").Next("b", ""), false},
		"MostGateways": {behind(limits.GatewayHops - 1), Way("").Next("c", ""), false},
		"OneTooMany":   {behind(limits.GatewayHops), Way("").Next("c", ""), true},
	} {
		if got := tc.path.Refuses(tc.way); got != tc.want {
			t.Errorf("%s: %q refuses %q: %t", name, tc.path, tc.way, got)
		}
	}
}

func TestCheckID(t *testing.T) {
	for id, ok := range map[string]bool{
		NewGateway(): true, GatewayOf("x"): true, "hub.eu-1_a": true, "": false, "a/b": false, "a,b": false,
		strings.Repeat("a", maxID): true, strings.Repeat("a", maxID+1): false,
	} {
		if err := CheckID(id); (err == nil) != ok {
			t.Errorf("%q: got %v", id, err)
		}
	}
}
