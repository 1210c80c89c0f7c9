// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
)

// TestBounds adds files at the limit, one beyond, and beyond all files together.
func TestBounds(t *testing.T) {
	var a Archive
	a.Add("at", strings.Repeat("x", MaxFile))
	a.Add("beyond", strings.Repeat("x", MaxFile+1))
	for i := range limits.ReportBytes/MaxFile - 2 {
		a.Add(fmt.Sprintf("more-%d", i), strings.Repeat("x", MaxFile))
	}
	a.Add("none", "x")
	var out bytes.Buffer
	entries, err := a.Write(&out, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	notes, total := map[string]string{}, 0
	for _, e := range entries {
		notes[e.Name] = e.Note
		total += e.Size
	}
	if total != limits.ReportBytes {
		t.Errorf("%d bytes, want %d", total, limits.ReportBytes)
	}
	for name, want := range map[string]string{
		"at": "", "beyond": "its first 8388608 of 8388609 bytes", "more-5": "", "none": "its first 0 of 1 bytes",
	} {
		if notes[name] != want {
			t.Errorf("%s: note %q, want %q", name, notes[name], want)
		}
	}
}

// TestSecret checks which texts are removed, wherever they are and however they are written.
func TestSecret(t *testing.T) {
	for name, tt := range map[string]struct{ secret, content, want string }{
		"Shortest":   {"123456", "a 123456 b", "a [removed] b"},
		"TooShort":   {"12345", "a 12345 b", "a 12345 b"},
		"Quoted":     {`a"b\c d`, `{"x":"a\"b\\c d"}`, `{"x":"[removed]"}`},
		"NotForHTML": {`a"b\c&d<e>`, `{"x":"a\"b\\c&d<e>"}`, `{"x":"[removed]"}`}, // as AddJSON writes it
		"ForHTML":    {`a"b\c&d<e>`, `{"x":"a\"b\\c\u0026d\u003Ce\u003e"}`, `{"x":"[removed]"}`},
		"ASCII":      {"pässwörd", `{"x":"p\u00e4ssw\u00F6rd"}`, `{"x":"[removed]"}`},
		"Slash":      {"abc/def", `{"x":"abc\/def"}`, `{"x":"[removed]"}`},
		"InALog":     {`a"b&c<d`, `{"msg":"body {\"x\":\"a\\\"b\\u0026c<d\"}"}`, `{"msg":"body {\"x\":\"[removed]\"}"}`},
		"InAURL":     {`a"b&c d`, `GET https://x/?t=a%22b%26c%20d&u=1`, `GET https://x/?t=[removed]&u=1`},
		"Pair":       {"secret😀", `"secret\ud83d\ude00"`, `"[removed]"`},
		"NotUTF8":    {"secret\xff!", "\"secret\ufffd!\" \"secret\\xff!\"", `"[removed]" "[removed]"`},
		"Overlap":    {"abcabcabc", `abcabcabcabcabc`, `[removed]`},
		"Backslash":  {`C:\new\u0041b`, `C:\new\u0041b "C:\\new\\u0041b"`, `[removed] "[removed]"`},
		"AtTheEnd":   {"abc\\def", `abc\\def\`, `[removed]\`},
		"Lines":      {"line-one\nline-two\n", "  line-two\n  line-one", "  [removed]\n  [removed]"},
		"LongestOne": {"longer-secret\nlonger", "longer-secret", "[removed]"},
	} {
		t.Run(name, func(t *testing.T) {
			var a Archive
			a.Add("f", tt.content)
			a.Secret(tt.secret)
			if got := newRedactor(a.secrets).redact(a.files[0].content); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzSecret quotes any secret in any order of ways, up to as often as is searched: nothing of it stays.
func FuzzSecret(f *testing.F) {
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
		if len(secret) < minSecret || strings.ContainsAny(secret, "\r\n") || strings.Contains(Removed, secret) {
			t.Skip()
		}
		r := newRedactor(map[string]bool{secret: true})
		form := secret
		for range 4 {
			if got := r.redact("<" + form + ">"); strings.Contains(got, form) {
				t.Errorf("%q stays in %q", secret, got)
			}
			form = ways[int(way)%len(ways)](form)
			way /= uint16(len(ways))
		}
		if escaped := url.PathEscape(secret); strings.Contains(r.redact("/"+escaped+"/"), escaped) {
			t.Errorf("%q stays in %q", secret, escaped)
		}
	})
}
