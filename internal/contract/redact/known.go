// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// leastKnown is the length of the shortest text that Known removes. Shorter ones, such as "on", are part of many words.
const leastKnown = 6

// maxQuoted is how many times a text may have been quoted within another, as JSON in a line of a log in JSON, and is
// still searched for secrets.
const maxQuoted = 4

// Known removes texts that are known to be secret, whichever characters of them are escaped as in JSON, in Go or in a
// URL: other programs escape others than encoding/json does, and what they wrote is quoted again. The zero value
// removes none. It must not be used concurrently.
type Known struct {
	byPrefix map[string][]string // by their first leastKnown bytes
	begins   [256]bool           // with which bytes they begin
}

// Add makes Remove remove the lines of values, but for those of less than leastKnown bytes, and values in base64.
// Whoever writes a text of several lines may indent them.
func (k *Known) Add(values ...string) {
	if k.byPrefix == nil {
		k.byPrefix = map[string][]string{}
	}
	add := func(s string) {
		if prefix := s[:leastKnown]; !slices.Contains(k.byPrefix[prefix], s) {
			k.byPrefix[prefix] = append(k.byPrefix[prefix], s)
			k.begins[s[0]] = true
		}
	}
	for _, v := range values {
		if whole := len(v) / 3 * 3; whole >= leastKnown { // in base64, whatever is behind it
			add(base64.StdEncoding.EncodeToString([]byte(v[:whole])))
		}
		for line := range strings.Lines(v) {
			line = strings.TrimSpace(line)
			if len(line) < leastKnown {
				continue
			}
			add(line)
			if valid := string([]rune(line)); valid != line { // as JSON has it
				add(valid)
			}
		}
	}
}

// Remove returns content without the secrets.
func (k *Known) Remove(content string) string {
	secret := make([]bool, len(content))
	original := view{text: content}
	k.mark(original, secret)
	if decoded, ok := original.decode('%', urlEscape); ok {
		k.mark(decoded, secret)
	}
	for v, n := original, 0; n < maxQuoted; n++ {
		var ok bool
		if v, ok = v.decode('\\', backslashEscape); !ok {
			break
		}
		k.mark(v, secret)
	}
	var b strings.Builder
	b.Grow(len(content))
	for i := 0; i < len(content); {
		start, is := i, secret[i]
		for i < len(content) && secret[i] == is {
			i++
		}
		if is {
			b.WriteString(Mask)
		} else {
			b.WriteString(content[start:i])
		}
	}
	return b.String()
}

// mark sets what v's secrets are in the original text.
func (k *Known) mark(v view, secret []bool) {
	for i := 0; i+leastKnown <= len(v.text); i++ {
		if !k.begins[v.text[i]] {
			continue
		}
		for _, s := range k.byPrefix[v.text[i:i+leastKnown]] {
			if !strings.HasPrefix(v.text[i:], s) {
				continue
			}
			for at := v.origin(i); at < v.origin(i+len(s)); at++ {
				secret[at] = true
			}
		}
	}
}

// view is a text, perhaps decoded, that knows where in the original each byte comes from.
type view struct {
	text string
	from []int32 // one more than bytes; nil for the original itself
}

func (v view) origin(i int) int {
	if v.from == nil {
		return i
	}
	return int(v.from[i])
}

// decode decodes each escape sequence that begins with first. ok is false if there is none.
func (v view) decode(first byte, escape func(s string) (decoded string, size int)) (_ view, ok bool) {
	if strings.IndexByte(v.text, first) < 0 {
		return v, false
	}
	var b strings.Builder
	b.Grow(len(v.text))
	from := make([]int32, 0, len(v.text)+1)
	for i := 0; i < len(v.text); {
		decoded, size := v.text[i:i+1], 1
		if v.text[i] == first {
			if d, n := escape(v.text[i:]); n > 0 {
				decoded, size, ok = d, n, true
			}
		}
		for range len(decoded) {
			from = append(from, int32(v.origin(i)))
		}
		b.WriteString(decoded)
		i += size
	}
	return view{b.String(), append(from, int32(v.origin(len(v.text))))}, ok
}

// urlEscape decodes the escape sequence of a URL that s begins with. size is 0 if it is none.
func urlEscape(s string) (decoded string, size int) {
	if len(s) < 3 {
		return "", 0
	}
	decoded, err := url.PathUnescape(s[:3])
	if err != nil {
		return "", 0
	}
	return decoded, 3
}

// backslashEscape decodes the escape sequence of JSON or Go that s begins with. size is 0 if it is none.
func backslashEscape(s string) (decoded string, size int) {
	if len(s) < 2 {
		return "", 0
	}
	switch s[1] {
	case '/', '\'':
		return s[1:2], 2
	case 'u':
		r, ok := hexRune(s)
		if !ok || !utf16.IsSurrogate(r) {
			break
		}
		if low, ok := hexRune(s[6:]); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return string(pair), 12
			}
		}
		return string(utf8.RuneError), 6
	}
	r, multibyte, tail, err := strconv.UnquoteChar(s, '"')
	switch {
	case err != nil:
		return "", 0
	case !multibyte && r >= utf8.RuneSelf: // \xff is a byte
		return string([]byte{byte(r)}), len(s) - len(tail)
	}
	return string(r), len(s) - len(tail)
}

// hexRune returns the value of \uXXXX, with which s begins if ok.
func hexRune(s string) (r rune, ok bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	return rune(n), err == nil
}
