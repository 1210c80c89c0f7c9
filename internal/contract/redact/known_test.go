// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// TestKnown checks which texts are removed, wherever they are and however they are written.
func TestKnown(t *testing.T) {
	for name, tt := range map[string]struct{ secret, content, want string }{
		"Base64":     {"planted-secret", "x cGxhbnRlZC1zZWNyZXQK y", "x ***ZXQK y"},
		"Shortest":   {"123456", "a 123456 b", "a *** b"},
		"TooShort":   {"12345", "a 12345 b", "a 12345 b"},
		"Quoted":     {`a"b\c d`, `{"x":"a\"b\\c d"}`, `{"x":"***"}`},
		"NotForHTML": {`a"b\c&d<e>`, `{"x":"a\"b\\c&d<e>"}`, `{"x":"***"}`}, // as AddJSON writes it
		"ForHTML":    {`a"b\c&d<e>`, `{"x":"a\"b\\c\u0026d\u003Ce\u003e"}`, `{"x":"***"}`},
		"ASCII":      {"pässwörd", `{"x":"p\u00e4ssw\u00F6rd"}`, `{"x":"***"}`},
		"Slash":      {"abc/def", `{"x":"abc\/def"}`, `{"x":"***"}`},
		"InALog":     {`a"b&c<d`, `{"msg":"body {\"x\":\"a\\\"b\\u0026c<d\"}"}`, `{"msg":"body {\"x\":\"***\"}"}`},
		"InAURL":     {`a"b&c d`, `GET https://x/?t=a%22b%26c%20d&u=1`, `GET https://x/?t=***&u=1`},
		"Pair":       {"secret😀", `"secret\ud83d\ude00"`, `"***"`},
		"NotUTF8":    {"secret\xff!", "\"secret\ufffd!\" \"secret\\xff!\"", `"***" "***"`},
		"Overlap":    {"abcabcabc", `abcabcabcabcabc`, `***`},
		"Backslash":  {`C:\new\u0041b`, `C:\new\u0041b "C:\\new\\u0041b"`, `*** "***"`},
		"AtTheEnd":   {"abc\\def", `abc\\def\`, `***\`},
		"Lines":      {"line-one\nline-two\n", "  line-two\n  line-one", "  ***\n  ***"},
		"LongestOne": {"longer-secret\nlonger", "longer-secret", "***"},
	} {
		t.Run(name, func(t *testing.T) {
			var k Known
			k.Add(tt.secret)
			if got := k.Remove(tt.content); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzKnown quotes any secret in any order of ways, up to as often as is searched: nothing of it stays.
func FuzzKnown(f *testing.F) {
	ways := []func(s string) string{
		func(s string) string { b, _ := json.Marshal(s); return string(b) }, // a string is never an error
		func(s string) string {
			var b strings.Builder
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			_ = e.Encode(s) // a string is never an error
			return b.String()
		},
		strconv.Quote, strconv.QuoteToASCII,
		func(s string) string { q := strconv.Quote(s); return strings.ReplaceAll(q[1:len(q)-1], "/", `\/`) },
	}
	for _, secret := range []string{`pass"word&<>`, `back\slash&`, "tab\tbell\a<", "pä/ss\u2028😀", "x\xff\x00yz12", `\u0026\"`, "a%41b\\n\"c", "'quote'&"} {
		for way := range 125 {
			f.Add(secret, uint16(way))
		}
	}
	f.Fuzz(func(t *testing.T, secret string, way uint16) {
		secret = strings.TrimSpace(secret)
		if len(secret) < leastKnown || strings.ContainsAny(secret, "\r\n") || strings.Contains(Mask, secret) {
			t.Skip()
		}
		var r Known
		r.Add(secret)
		form := secret
		for range 4 {
			if got := r.Remove("<" + form + ">"); strings.Contains(got, form) {
				t.Errorf("%q stays in %q", secret, got)
			}
			form = ways[int(way)%len(ways)](form)
			way /= uint16(len(ways))
		}
		if escaped := url.PathEscape(secret); strings.Contains(r.Remove("/"+escaped+"/"), escaped) {
			t.Errorf("%q stays in %q", secret, escaped)
		}
	})
}
