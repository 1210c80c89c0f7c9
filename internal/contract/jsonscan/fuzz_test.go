// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/base/alloctest"
)

// Only strings with escapes are copied.
var memory = alloctest.Bound{Base: 64 << 10, PerByte: 16}

// valid returns an error unless b is one JSON value in UTF-8.
func valid(b []byte) error {
	s := Scanner{Text: b}
	i, err := s.Value(Space(b, 0), 0)
	if err == nil {
		err = s.End(i)
	}
	if err == nil {
		err = s.UTF8()
	}
	return err
}

// validJSON reports whether b is JSON for encoding/json, and UTF-8.
func validJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

// isLimit reports whether an error is one that JSON itself does not know.
func isLimit(err error) bool { return strings.HasSuffix(err.Error(), "nested deeper than 1000") }

// FuzzScan compares the scanner with encoding/json.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		``, ` `, `{}`, `[]`, `""`, `0`, `-0.5e+10`, `01`, `1.`, `.5`, `+1`, `-`, `1e`, `true`, `tru`, `nulll`, `"\u00e9\n"`, `"\x"`, `"\u12"`, "\"\x1f\"", "\"\x7f\"",
		`{"a":1,"b":[{},[],"x"],"c":{"d":null}}`, `{"a":1,}`, `[1,]`, `[1 2]`, `{"a" 1}`, `{1:2}`, `[}`, `{]`, `[[[[]]]]`, `{"a":{"a":{"a":1}}}`,
		"\"\xff\"", `"12345678"`, `"1234567\"89"`, `"é234567é"`, " \n\t\r [ 1 , 2 ] ", strings.Repeat(" ",
			40) + "1", strings.Repeat("[", 1100),
		`{"items":[{"uid":"6d7ab4a6-63ff-4b5e","object":{"name":"quick-start","n":9007199254740993}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var value []byte
		memory.Check(t, len(b), func() { value, _ = Lookup(b, "a", "a") })
		if value != nil && validJSON(b) && !json.Valid(value) {
			t.Errorf("Lookup returned %s", value)
		}
		var text string
		var ok bool
		memory.Check(t, len(b), func() { text, ok = String(b) })
		if ok {
			var want string
			if err := json.Unmarshal(b, &want); err != nil || text != want {
				t.Errorf("String is %q, want %q (%v)", text, want, err)
			}
		}
		if len(b) == 0 {
			return
		}
		memory.Check(t, len(b), func() { _ = valid(b) })
		for _, text := range aligned(b) {
			err := valid(text)
			if err != nil && isLimit(err) {
				continue
			}
			if got, want := err == nil, validJSON(text); got != want {
				t.Errorf("%q: valid is %t, want %t (%v)", text, got, want, err)
			}
			if err != nil && json.Valid(text) {
				if want := fmt.Sprintf("invalid JSON at byte %d: not UTF-8", firstBad(text)); err.Error() != want {
					t.Errorf("%q: got %v, want %s", text, err, want)
				}
			}
		}
	})
}

// aligned returns b, and b as a text, an element and a member that begin at each of eight bytes in a row, and end at
// each distance from the end of the whole text at which the scanner goes on byte by byte. Beyond its end, each slice
// has bytes that would complete many a text that ends early.
func aligned(b []byte) [][]byte {
	texts := [][]byte{b}
	for n := range 8 {
		letters := strings.Repeat("a", n)
		for _, around := range [][2]string{
			{strings.Repeat(" ", n), ""}, {`["` + letters + `",`, `]`}, {`{"` + letters + `":`, `,"` + letters + `":0}`},
		} {
			text := around[0] + string(b) + around[1]
			texts = append(texts, []byte(text + `"}]}0123456789`)[:len(text)])
		}
	}
	return texts
}

// firstBad returns the index of the first byte that is not UTF-8.
func firstBad(b []byte) int {
	i := 0
	for len(b) > i {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// FuzzMembers walks through objects and arrays with Next and Name, and compares with encoding/json.
func FuzzMembers(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":1}`, ` [ 1 , "b" , { "c" : [ ] } ] `, `{"a":{"b":[{}]},"\u0061":"\ud83d"}`, `{"a":1,}`, `[1,]`, `{"a"}`, `[1 2]`, `{"a":1]`, `[1}`, `{`, `[`, `{"a":`,
		`{"a":1,"b"`, `{,}`, `[,]`, "{\"\xff\":\"\xff\"}", `3`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, text := range aligned(b) {
			walked(t, text)
		}
	})
}

// walked compares what walk makes of b with what encoding/json does.
func walked(t *testing.T, b []byte) {
	t.Helper()
	s := Scanner{Text: b}
	got, end, err := walk(&s, Space(b, 0), 0)
	if err == nil {
		err = s.End(end)
	}
	if err != nil && isLimit(err) {
		return
	}
	if json.Valid(b) != (err == nil) {
		t.Fatalf("%s: got %v, encoding/json disagrees", b, err)
	}
	if err != nil {
		return
	}
	var want any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-encoding/json +walk):\n%s", b, diff)
	}
}

// walk decodes the value that begins at i, as encoding/json decodes it into an interface.
func walk(s *Scanner, i, depth int) (value any, end int, err error) {
	switch s.At(i) {
	case '{':
		object := map[string]any{}
		for first := true; ; first = false {
			start, more, err := s.Next(i, first, '}')
			if err != nil || !more {
				return object, start, err
			}
			end, value, err := s.Name(start)
			if err != nil {
				return nil, end, err
			}
			name, _ := Unescape(s.Text[start+1 : end-1])
			if object[string(name)], i, err = walk(s, value, depth+1); err != nil {
				return nil, i, err
			}
		}
	case '[':
		list := []any{}
		for first := true; ; first = false {
			next, more, err := s.Next(i, first, ']')
			if err != nil || !more {
				return list, next, err
			}
			var element any
			if element, i, err = walk(s, next, depth+1); err != nil {
				return nil, i, err
			}
			list = append(list, element)
		}
	}
	if end, err = s.Value(i, depth); err != nil {
		return nil, end, err
	}
	switch text := s.Text[i:end]; text[0] {
	case '"':
		b, _ := Unescape(text[1 : len(text)-1])
		return string(b), end, nil
	case 't', 'f':
		return text[0] == 't', end, nil
	case 'n':
		return nil, end, nil
	default:
		return json.Number(text), end, nil
	}
}

func TestDepth(t *testing.T) {
	for levels, want := range map[int]string{
		1000: "", 1001: "invalid JSON at byte 1000: nested deeper than 1000",
	} {
		text := strings.Repeat("[", levels) + strings.Repeat("]", levels)
		got := ""
		if err := valid([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d levels: got %q, want %q", levels, got, want)
		}
		around := 300
		text = strings.Repeat("[", levels-around) + strings.Repeat("]", levels-around)
		if _, err := (&Scanner{Text: []byte(text)}).Value(0, around); (err != nil) != (want != "") {
			t.Errorf("%d levels with %d around: got %v", levels-around, around, err)
		}
		if value, _ := Lookup([]byte(strings.Repeat(`{"a":`, levels)+"1"+strings.Repeat("}", levels)), "a",
			"a"); (value != nil) != (want == "") {
			t.Errorf("Lookup in %d levels: found %s", levels, value)
		}
	}
}
