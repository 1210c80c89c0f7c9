// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestCellsOfFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--sizes S":                                 "S, 1 caller, HTTP/1.1; S, 1 caller, HTTP/2; S, 16 callers, HTTP/1.1; S, 16 callers, HTTP/2; S, 1000 callers, HTTP/1.1",
		"--sizes M,S --protocols h1":                "M, 1 caller, HTTP/1.1; M, 16 callers, HTTP/1.1; S, 1 caller, HTTP/1.1; S, 16 callers, HTTP/1.1; S, 1000 callers, HTTP/1.1",
		"--sizes S --protocols h2":                  "S, 1 caller, HTTP/2; S, 16 callers, HTTP/2",
		"--sizes 1KB --callers 30,3 --protocols h1": "1KB, 30 callers, HTTP/1.1; 1KB, 3 callers, HTTP/1.1",
		"--sizes S --ratio --baseline old":          "S, 16 callers, HTTP/1.1; S, 16 callers, HTTP/2",
	} {
		o, err := parseOptions(append([]string{"--hookgate", "new"}, strings.Fields(flags)...), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", flags, err)
			continue
		}
		var cells []string
		for _, c := range o.cells {
			cells = append(cells, c.String())
		}
		if got := strings.Join(cells, "; "); got != want {
			t.Errorf("%s: %s", flags, got)
		}
	}
}

func TestPaceOfFlags(t *testing.T) {
	for flags, want := range map[string][2]int{
		"": {5, 10}, "--rounds 7": {7, 14}, "--quick": {3, 3}, "--quick --rounds 4": {4, 4}, "--max-rounds 6": {5, 6},
	} {
		o, err := parseOptions(append([]string{"--hookgate", "new", "--sizes", "S"}, strings.Fields(flags)...), io.Discard)
		if err != nil || o.pace.rounds != want[0] || o.pace.most != want[1] {
			t.Errorf("%q: %d rounds, %d at most, %v", flags, o.pace.rounds, o.pace.most, err)
		}
	}
}

func TestWrongFlags(t *testing.T) {
	for _, flags := range []string{
		"--hookgate x --sizes X", "--hookgate x --callers 0", "--hookgate x --callers 1001", "--hookgate x --callers 101 --protocols h2",
		"--hookgate x --handlers 0", "--hookgate x --handlers 1001", "--hookgate x --handlers 1,", "--hookgate x --peers envoy",
		"--hookgate x --parts all", "--hookgate x --rounds -1", "--hookgate x --max-rounds -1", "--hookgate x --ratio", "--ratio", "",
		"--baseline x", "--hookgate x more",
	} {
		if _, err := parseOptions(strings.Fields(flags), io.Discard); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", flags, err)
		}
	}
	o, err := parseOptions([]string{"--peers", "direct"}, io.Discard)
	if err != nil || !slices.Equal(o.peers, []string{peerDirect}) {
		t.Errorf("without the gateway: %v, %v", o.peers, err)
	}
}
