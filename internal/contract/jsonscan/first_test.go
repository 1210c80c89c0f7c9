// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import "testing"

func TestFirst(t *testing.T) {
	names := []string{"name", "uid"}
	for text, want := range map[string][2]string{
		`{"a":{"name":"c","uid":"1"}}`:                                      {`"c"`, `"1"`},
		`{ "b" : [{"a":{"name":"x"}}], "a" : { "uid" : 1 , "name" : {} } }`: {`{}`, `1`},
		`{"a":{"name":"c","name":"d","uid":"1","uid":"2"}}`:                 {`"c"`, `"1"`},
		`{"a":{"name":"c"},"a":{"uid":"1"}}`:                                {`"c"`, ``},
		`{"a":{"n\u0061me":"c"}}`:                                           {`"c"`, ``},
		`{"A":{"name":"c"}}`:                                                {},
		`{"a":[{"name":"c"}]}`:                                              {},
		`{"a":{}}`:                                                          {},
		`{"a":{"uid":"1","name":`:                                           {``, `"1"`},
		`{"a"`:                                                              {},
		`[]`:                                                                {},
		``:                                                                  {},
	} {
		values := [][]byte{[]byte("left"), []byte("over")}
		First([]byte(text), []string{"a"}, names, values)
		if got := [2]string{string(values[0]), string(values[1])}; got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
