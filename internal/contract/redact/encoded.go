// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// leastEncoded is the length of the shortest text in base64 that is decoded.
const leastEncoded = 10

// sixBits are the values of the characters of both alphabets of base64; 0xff is none.
var sixBits = func() (by [256]byte) {
	for i := range by {
		by[i] = 0xff
	}
	for _, alphabet := range []string{
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	} {
		for i := range len(alphabet) {
			by[alphabet[i]] = byte(i)
		}
	}
	return by
}()

// runEnd returns where the characters of base64 end that begin at i.
func runEnd[T string | []byte](s T, i int) int {
	for i < len(s) && sixBits[s[i]] != 0xff {
		i++
	}
	return i
}

// mayDecode reports whether a text in base64 may be one that is decoded, by its first six bytes: text, or something
// that is told by its beginning.
func mayDecode[T string | []byte](s T) bool {
	if len(s) < leastEncoded {
		return false
	}
	var d [6]byte
	for i := range 2 {
		a, b, c, e := sixBits[s[4*i]], sixBits[s[4*i+1]], sixBits[s[4*i+2]], sixBits[s[4*i+3]]
		d[3*i], d[3*i+1], d[3*i+2] = a<<2|b>>4, b<<4|c>>2, c<<6|e
	}
	if isText(d[:]) || d[1] == 0 && d[3] == 0 && d[5] == 0 { // or UTF-16
		return true
	}
	switch d[0] {
	case 0x1f, 0x30, 0x78, 0xfd, 0x28, 0xff, 0xfe:
		return isCompressed(d[:]) || d[0] == 0x30 && (d[1] < 0x80 || d[1] == 0x81 || d[1] == 0x82) || d[0] == 0x78 ||
			d[0] == 0xff && d[1] == 0xfe || d[0] == 0xfe && d[1] == 0xed
	}
	return false
}

// isText reports whether the bytes may be those of a text in UTF-8, or of its beginning.
func isText(d []byte) bool {
	for _, c := range d {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f || c > 0xf4 {
			return false
		}
	}
	for len(d) > 0 && (d[0] < utf8.RuneSelf || utf8.FullRune(d)) {
		r, size := utf8.DecodeRune(d)
		if r == utf8.RuneError {
			return false
		}
		d = d[size:]
	}
	return true
}

// hasEncoded reports whether a part of s may be a text in base64, or has escapes of URLs.
func hasEncoded(s []byte) bool {
	for i := 0; i < len(s); i++ {
		if sixBits[s[i]] == 0xff {
			if s[i] == '%' && isEscape(s[i:]) {
				return true
			}
			continue
		}
		end := runEnd(s, i)
		if end-i >= leastEncoded && (mayDecode(s[i:end]) || mayDecode(lastPart(s[i:end])) || i > 0 && s[i-1] == '\\') {
			return true
		}
		i = end - 1
	}
	return false
}

// lastPart returns what is behind the last slash or dash of a run, as in a path before a text in base64.
func lastPart[T string | []byte](s T) T {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' || s[i] == '-' {
			return s[i+1:]
		}
	}
	return s[len(s):]
}

// encoded returns s without the secrets in its parts that are base64.
func (c *cleaner) encoded(s string, depth int, patch bool) string {
	var b strings.Builder
	copied := 0
	for i := 0; i < len(s); {
		if sixBits[s[i]] == 0xff {
			i++
			continue
		}
		end := runEnd(s, i)
		if i > 0 && s[i-1] == '\\' { // the letter is of \n
			i++
		}
		r := readRun(s, i, end)
		clean, found := c.run(&r, depth, patch)
		if found == unread && r.lines > 1 {
			r = readLine(s, i, end)
			clean, found = c.run(&r, depth, patch)
		}
		if part := lastPart(s[i:end]); found == unread && part != "" {
			r = readLine(s, end-len(part), end)
			clean, found = c.run(&r, depth, patch)
		}
		if found == secret {
			b.WriteString(s[copied:r.from])
			b.WriteString(clean)
			copied = r.to
		}
		i = max(r.to, end)
	}
	if copied == 0 {
		return s
	}
	b.WriteString(s[copied:])
	return b.String()
}

// run is a text in base64 as it stands in another.
type run struct {
	from, to int
	text     string // without padding and ends of lines
	padded   bool
	lines    int
	width    int
	newline  string // with the indentation behind it
}

// readLine reads what is in base64 in one line.
func readLine(s string, from, end int) run {
	r := run{from: from, to: end, text: s[from:end], lines: 1}
	for r.to < len(s) && s[r.to] == '=' && r.to < end+2 {
		r.to++
		r.padded = true
	}
	return r
}

// leastWidth is the length of the shortest lines into which base64 is wrapped.
const leastWidth = 20

// readRun reads what is in base64, also over lines of the same length.
func readRun(s string, from, end int) run {
	r := readLine(s, from, end)
	r.width = end - from
	if r.width < leastWidth || r.to > end {
		return r
	}
	var all strings.Builder
	for at := end; ; {
		next := at
		for _, newline := range []string{"\r\n", "\n", `\r\n`, `\n`} {
			if strings.HasPrefix(s[at:], newline) {
				next += len(newline)
				break
			}
		}
		if next == at {
			break
		}
		next += len(s[next:]) - len(strings.TrimLeft(s[next:], " \t"))
		lineEnd := runEnd(s, next)
		if lineEnd == next || lineEnd-next > r.width {
			break
		}
		if r.lines == 1 {
			r.newline = s[at:next]
			all.WriteString(r.text)
		}
		all.WriteString(s[next:lineEnd])
		line := readLine(s, next, lineEnd)
		r.to, r.padded = line.to, line.padded
		r.lines++
		if at = line.to; line.padded || lineEnd-next < r.width {
			break
		}
	}
	if r.lines > 1 {
		r.text = all.String()
	}
	return r
}

// decode returns what the text is, and in which encoding.
func (r *run) decode() ([]byte, *base64.Encoding, bool) {
	if len(r.text)%4 == 1 || !mayDecode(r.text) {
		return nil, nil, false
	}
	e := base64.RawStdEncoding
	if strings.ContainsAny(r.text, "-_") {
		e = base64.RawURLEncoding
	}
	data, err := e.DecodeString(r.text)
	return data, e, err == nil
}

// finding says what a text in base64 is.
type finding int

const (
	unread   finding = iota // it is none
	harmless                // it has no secret
	secret
)

// run returns a text in base64 without the secrets of its content.
func (c *cleaner) run(r *run, depth int, patch bool) (string, finding) {
	data, encoding, ok := r.decode()
	if !ok {
		return "", unread
	}
	clean, found := c.data(data, depth, patch)
	switch {
	case !found && isText(data):
		return "", harmless
	case !found:
		return "", unread
	case clean == nil:
		return Mask, secret
	}
	if r.padded || len(r.text)%4 == 0 {
		encoding = encoding.WithPadding('=')
	}
	text := encoding.EncodeToString(clean)
	if r.lines == 1 {
		return text, secret
	}
	var b strings.Builder
	for len(text) > r.width {
		b.WriteString(text[:r.width] + r.newline)
		text = text[r.width:]
	}
	return b.String() + text, secret
}

// data returns decoded data without its secrets, if it had some. Nil stands for data that cannot be left, and cannot be
// written without its secrets: what is not understood is taken for a secret where it has the form of one.
func (c *cleaner) data(data []byte, depth int, patch bool) (clean []byte, found bool) {
	if isKey(data) {
		return nil, true
	}
	if text, ok := fromUTF16(data); ok {
		return nil, c.text(text, depth+1, false) != text
	}
	if isCompressed(data) {
		return c.compressed(data, depth, patch)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 || !isText(data) {
		return nil, false
	}
	if c.left -= len(data); c.left < 0 || depth >= limits.RedactDepth {
		return nil, mayHide(data)
	}
	text := string(data)
	after := c.text(text, depth+1, patch)
	return []byte(after), after != text
}

// isCompressed reports whether data begins as that of gzip, zlib, bzip2, xz, zstd, lz4 or zip.
func isCompressed(data []byte) bool {
	for _, begin := range []string{
		"\x1f\x8b\x08", "\x78\x01", "\x78\x5e", "\x78\x9c", "\x78\xda", "BZh", "\xfd7zXZ", "\x28\xb5\x2f\xfd",
		"\x04\x22\x4d\x18", "PK\x03\x04",
	} {
		if len(data) >= len(begin) && string(data[:len(begin)]) == begin {
			return true
		}
	}
	return false
}

// compressed does what data does for compressed data.
func (c *cleaner) compressed(data []byte, depth int, patch bool) (clean []byte, found bool) {
	var in io.Reader
	var err error
	switch data[0] {
	case 0x1f:
		in, err = gzip.NewReader(bytes.NewReader(data))
	case 0x78:
		in, err = zlib.NewReader(bytes.NewReader(data))
	case 'B':
		in = bzip2.NewReader(bytes.NewReader(data))
	default:
		return nil, true // its content cannot be read here
	}
	if err != nil {
		return nil, false
	}
	plain, err := io.ReadAll(io.LimitReader(in, int64(max(c.left, 0))+1))
	if len(plain) == 0 {
		return nil, false
	}
	if c.left -= len(plain); err != nil || c.left < 0 || depth >= limits.RedactDepth {
		return nil, c.left < 0 || mayHide(plain)
	}
	text := string(plain)
	after := c.text(text, depth+1, patch)
	if after == text || data[0] != 0x1f || !utf8.ValidString(after) {
		return nil, after != text
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err = io.WriteString(w, after); err == nil {
		err = w.Close()
	}
	return b.Bytes(), err == nil
}

// fromUTF16 returns the text that data is in UTF-16, as PowerShell takes it in base64.
func fromUTF16(data []byte) (string, bool) {
	data = bytes.TrimPrefix(data, []byte("\xff\xfe"))
	if len(data) < 8 || len(data)%2 != 0 {
		return "", false
	}
	units := make([]uint16, len(data)/2)
	zeros := 0
	for i := range units {
		units[i] = uint16(data[2*i]) | uint16(data[2*i+1])<<8
		if data[2*i+1] == 0 {
			zeros++
		}
	}
	return string(utf16.Decode(units)), zeros > len(units)*3/4
}
