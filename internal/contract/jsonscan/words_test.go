// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand"
	"strings"
	"testing"
)

// TestErrorsAtEveryByte moves an error through the words that the scanner reads, and through the last bytes of the
// text, which it reads one by one.
func TestErrorsAtEveryByte(t *testing.T) {
	const escape = ", want an escape sequence for a control character"
	tests := map[string]struct {
		head string
		pad  string // repeated between head and tail
		tail string
		at   int // of the error, from the beginning of tail
		want string
	}{
		"ControlInString":     {`["`, "a", "\x1f\"]", 0, "unexpected byte 0x1f" + escape},
		"ControlInName":       {`{"`, "a", "\n\":1}", 0, "unexpected byte 0x0a" + escape},
		"ControlAfterEscape":  {`["\"`, "a", "\\\\\t\"]", 2, "unexpected byte 0x09" + escape},
		"ControlAfterRune":    {`["é`, "a", "é\x00\"]", 2, "unexpected byte 0x00" + escape},
		"Escape":              {`["`, "a", `\x"]`, 1, "unexpected 'x', want an escape sequence"},
		"EscapeInName":        {`{"`, "a", `\U0000":1}`, 1, "unexpected 'U', want an escape sequence"},
		"Hex":                 {`["`, "a", `\u12g4"]`, 4, "unexpected 'g', want a hexadecimal digit"},
		"Comma":               {`["`, "a", `" 1]`, 2, "unexpected '1', want ',' or ']'"},
		"CommaOfMembers":      {`{"":"`, "a", `";}`, 1, "unexpected ';', want ',' or '}'"},
		"WrongBracket":        {`["`, "a", `"}`, 1, "unexpected '}', want ',' or ']'"},
		"Colon":               {`{"`, "a", `" 1}`, 2, "unexpected '1', want ':'"},
		"Name":                {`{"`, "a", `":1,2}`, 4, "unexpected '2', want a member name"},
		"FirstName":           {`["`, "a", `",{1}]`, 3, "unexpected '1', want a member name"},
		"Value":               {`{"`, "a", `":}`, 2, "unexpected '}', want a value"},
		"Element":             {`["`, "a", `",]`, 2, "unexpected ']', want a value"},
		"True":                {`["`, "a", `",trux]`, 5, "unexpected 'x', want true"},
		"False":               {`["`, "a", `",falsy]`, 6, "unexpected 'y', want false"},
		"Null":                {`["`, "a", `",nul]`, 5, "unexpected ']', want null"},
		"Digit":               {`["`, "a", `",-]`, 3, "unexpected ']', want a digit"},
		"LeadingZero":         {`["`, "a", `",01]`, 3, "unexpected '1', want no digit after a leading 0"},
		"Exponent":            {`["`, "a", `",1e+]`, 5, "unexpected ']', want a digit"},
		"AfterDigits":         {`[1`, "0", `x]`, 0, "unexpected 'x', want ',' or ']'"},
		"Fraction":            {`[1`, "9", `.x]`, 1, "unexpected 'x', want a digit"},
		"NulAmongSpace":       {`[`, " ", "\x00]", 0, "unexpected byte 0x00, want a value"},
		"VerticalTab":         {`[1`, "\n ", "\v]", 0, "unexpected byte 0x0b, want ',' or ']'"},
		"NotUTF8":             {`["`, "a", "\xff\"]", 0, "not UTF-8"},
		"HalfARune":           {`["`, "a", "é\xc3\"]", 2, "not UTF-8"},
		"HalfARuneThenEscape": {`["`, "a", "\xe2\x82\\n\"]", 0, "not UTF-8"},
		"Continuation":        {`{"`, "é", "é\x80\":1}", 2, "not UTF-8"},
		"Surrogate":           {`["`, "a€", "\xed\xa0\x80\"]", 0, "not UTF-8"},
		"Overlong":            {`["\t`, "a", "aé\xc0\x80\"]", 3, "not UTF-8"},
		"FirstOfTwo":          {`{"`, "a", "\xff\":\"\xfe\"}", 0, "not UTF-8"},
		"SyntaxBeforeUTF8":    {"[\"\xff", "a", "\x01\"]", 0, "unexpected byte 0x01" + escape},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for n := range 26 {
				for after := range 10 {
					head := tc.head + strings.Repeat(tc.pad, n)
					text := head + tc.tail + strings.Repeat(" ", after)
					want := fmt.Sprintf("invalid JSON at byte %d: %s", len(head)+tc.at, tc.want)
					if err := valid([]byte(text)); err == nil || err.Error() != want {
						t.Fatalf("%q: got %v, want %s", text, err, want)
					}
				}
			}
		})
	}
}

// TestEarlyAtEveryByte cuts a text off after each byte, with every number of bytes before it modulo 8.
func TestEarlyAtEveryByte(t *testing.T) {
	const text = `{"name":"pa\u00e9y\nlöad 支","list":[1,23,4567890123,-0.5e+10,0,true,false,null,{},[],""],` +
		"\n\t\t          \"o\" : { \"a\" : [ \"b\" , 1 ] }\r\n}"
	for before := range 8 {
		all := strings.Repeat(" ", before) + text
		if err := valid([]byte(all)); err != nil {
			t.Fatal(err)
		}
		for end := before + 1; end < len(all); end++ {
			want := fmt.Sprintf("JSON ends early at byte %d", end)
			if err := valid([]byte(all)[:end]); err == nil || err.Error() != want {
				t.Errorf("%q: got %v, want %s", all[:end], err, want)
			}
		}
	}
}

// TestWords compares the patterns with a look at every byte, for each byte at each place among others.
func TestWords(t *testing.T) {
	tests := map[string]struct {
		word func(uint64) uint64
		byte func(c byte) bool
	}{
		"Special": {special, func(c byte) bool { return c == '"' || c == '\\' || c < ' ' || c >= 0x80 }},
		"Stops":   {stops, func(c byte) bool { return c == '"' || c == '\\' || c < ' ' }},
		"NoDigit": {noDigit, func(c byte) bool { return c < '0' || c > '9' }},
	}
	random := rand.New(rand.NewSource(1))
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var b [8]byte
			for place := range 8 {
				for c := range 256 {
					for range 50 {
						random.Read(b[:])
						for i := range place { // nothing that is looked for comes before c
							for tc.byte(b[i]) {
								b[i] = byte(random.Intn(256))
							}
						}
						b[place] = byte(c)
						want := 0
						for want < 8 && !tc.byte(b[want]) {
							want++
						}
						if got := bits.TrailingZeros64(tc.word(binary.LittleEndian.Uint64(b[:]))) / 8; got != want {
							t.Fatalf("%q: found byte %d, want %d", b, got, want)
						}
					}
				}
			}
		})
	}
}
