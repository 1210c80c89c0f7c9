// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"unicode/utf8"
)

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAppendString compares with encoding/json, both ways, on every rune of interest and on random bytes.
func TestAppendString(t *testing.T) {
	var texts []string
	for r := range rune(0x300) {
		texts = append(texts, string(r), "a"+string(r)+"b")
	}
	texts = append(texts, "", "\u2027\u2028\u2029\u202a", "\xff", "a\xc3", "\xed\xa0\x80", "\ufffd", "😀",
		"\U0010ffff", strings.Repeat("é\"", 100))
	random := rand.New(rand.NewSource(1))
	for range 2000 {
		b := make([]byte, random.Intn(24))
		random.Read(b)
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		want := marshal(t, text)
		got := AppendString(nil, text)
		if !bytes.Equal(got, want) {
			t.Errorf("AppendString(%q) = %s, want %s", text, got, want)
		}
		back, ok := String(got)
		if want := strings.ToValidUTF8(text, "\ufffd"); !ok || strings.ToValidUTF8(back, "") != back {
			t.Errorf("String(%s) = %q, %t, want %q", got, back, ok, want)
		}
		var plain string
		if err := json.Unmarshal(got, &plain); err != nil || plain != back {
			t.Errorf("String(%s) = %q, want %q", got, back, plain)
		}
	}
}

func TestUnescape(t *testing.T) {
	tests := map[string]struct {
		inside string
		want   string
		ok     bool
	}{
		"Plain":           {`text`, "text", true},
		"Empty":           {``, "", true},
		"Short":           {`\"\\\/\b\f\n\r\t`, "\"\\/\b\f\n\r\t", true},
		"Hex":             {`\u00e9\u00E9\u0000`, "éé\x00", true},
		"Pair":            {`\ud83d\ude00`, "😀", true},
		"Pairs":           {`a\ud83d\ude00\uD83D\uDE00b`, "a😀😀b", true},
		"LargestRune":     {`\udbff\udfff`, "\U0010ffff", true},
		"AroundTheHalves": {`\ud7ff\ue000\uffff`, "\uD7FF\ue000\uffff", true},
		"High":            {`a\ud83d`, "a\ufffd", false},
		"Low":             {`\ude00b`, "\ufffdb", false},
		"Swapped":         {`\ude00\ud83d`, "\ufffd\ufffd", false},
		"HighThenText":    {`\ud83dabcdef`, "\ufffdabcdef", false},
		"HighThenEscape":  {`\ud83d\nabcdef`, "\ufffd\nabcdef", false},
		"HighThenRune":    {`\ud83d\u0041`, "\ufffdA", false},
		"HighThenPair":    {`\ud83d\ud83d\ude00`, "\ufffd😀", false},
		"HighThenSlash":   {`\ud83d\\ude00`, "\ufffd\\ude00", false},
		"NotUTF8":         {"a\xffb\xc3", "a\ufffdb\ufffd", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := Unescape([]byte(tc.inside))
			if string(got) != tc.want || ok != tc.ok {
				t.Errorf("got %q, %t, want %q, %t", got, ok, tc.want, tc.ok)
			}
			var theirs string
			if err := json.Unmarshal([]byte(`"`+tc.inside+`"`), &theirs); err != nil || theirs != tc.want {
				t.Errorf("encoding/json reads %q, %v, want %q", theirs, err, tc.want)
			}
			text, end, err := (&Scanner{Text: []byte(`"` + tc.inside + `"`)}).String(0)
			if ok != (err == nil) || ok &&
				(end != len(tc.inside)+2 || utf8.ValidString(tc.inside) && string(text) != tc.want) {
				t.Errorf("String returns %q, %d, %v", text, end, err)
			}
		})
	}
}
