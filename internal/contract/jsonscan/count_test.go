// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	for text, want := range map[string]Counts{
		``:                         {1, 0, 0},
		`1`:                        {1, 0, 1},
		`[1,[2,3]]`:                {5, 0, 0},
		`{"a":{"b":[1]},"c":null}`: {5, 2, 0},
		`"[,{\"[,{"`:               {1, 0, 10},
		`["\\",1]`:                 {3, 0, 0},
		`]]}`:                      {1, 0, 6},
		`"\`:                       {1, 0, 2},
	} {
		got := Count([]byte(text))
		if want.Indented == 0 && json.Valid([]byte(text)) {
			var b bytes.Buffer
			if err := json.Indent(&b, []byte(text), "", "  "); err != nil {
				t.Fatal(err)
			}
			want.Indented = b.Len()
		}
		if got != want {
			t.Errorf("%s: got %+v, want %+v", text, got, want)
		}
	}
	deep := strings.Repeat("[", 5000) + strings.Repeat("1,", 5000) + "1" + strings.Repeat("]", 5000)
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(deep), "", "  "); err != nil {
		t.Fatal(err)
	}
	if got := Count([]byte(deep)).Indented; got != b.Len() {
		t.Errorf("nested deeply: %d bytes, want %d", got, b.Len())
	}
}
