// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/internal/base/bulk"
)

// enumField reads an enum from its text.
func (d *decoder) enumField(f *field, to message, i int) (int, error) {
	s, end, err := d.stringAt(f.name, i)
	if err != nil {
		return end, err
	}
	for n, text := range f.enum {
		if s == text {
			to.setEnum(f, n)
			return end, nil
		}
	}
	return i, wrong(f.name, i, "want %s, got %s", strings.Join(quoted(f.enum[1:]), " or "), excerpt(s))
}

// bytesField reads bytes from base64.
func (d *decoder) bytesField(f *field, to message, i int) (int, error) {
	if d.Text[i] != '"' {
		return i, d.mismatch(f.name, i, "a string of base64")
	}
	text, end, err := d.String(i)
	if err != nil {
		return end, err
	}
	if err := d.meter.text(len(text)); err != nil {
		return end, err
	}
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, bad := base64.StdEncoding.Decode(data, text)
	if bad != nil {
		return i, wrong(f.name, i, "is not base64")
	}
	*pointer[[]byte](to, f.index) = data[:n]
	return end, nil
}

// int32At reads the integer at i, the value of the member of that name.
func (d *decoder) int32At(name string, i int) (int32, int, error) {
	if c := d.Text[i]; c != '-' && c-'0' > 9 {
		return 0, i, d.mismatch(name, i, "an integer")
	}
	end, err := d.Number(i)
	if err != nil {
		return 0, end, err
	}
	text := d.Text[i:end:end]
	if len(text) > longest+1 {
		text = text[:longest+1] // too long in any case, and an error shows no more of it
	}
	n, bad := strconv.ParseInt(string(text), 10, 32)
	if bad != nil {
		got := printable(string(text))
		return 0, i, wrong(name, i, "want an integer from %d to %d, got %s", math.MinInt32, math.MaxInt32, got)
	}
	return int32(n), end, nil
}

func (d *decoder) boolAt(name string, i int) (bool, int, error) {
	switch d.Text[i] {
	case 't':
		end, err := d.Literal(i, "true")
		return true, end, err
	case 'f':
		end, err := d.Literal(i, "false")
		return false, end, err
	}
	return false, i, d.mismatch(name, i, "true or false")
}

// stringAt reads a string. The message gets a copy, or shares the copy of an equal string that was read before.
func (d *decoder) stringAt(name string, i int) (string, int, error) {
	if d.Text[i] != '"' {
		return "", i, d.mismatch(name, i, "a string")
	}
	text, end, err := d.String(i)
	if err != nil {
		return "", end, err
	}
	if len(text) == 0 {
		return "", end, nil
	}
	size := len(text)
	if size < end-i-len(`""`) { // it has escape sequences, so that it is a copy itself
		size *= 2
	}
	if err := d.meter.text(size); err != nil {
		return "", end, err
	}
	slot := &d.texts[(len(text)*7+int(text[0])*3+int(text[len(text)-1]))%len(d.texts)]
	if *slot != string(text) {
		*slot = bulk.String(text)
	}
	return *slot, end, nil
}

// mismatch returns the error of a value of another type than the schema's, at the member that path names.
func (d *decoder) mismatch(path string, i int, want string) error {
	var got string
	switch c := d.Text[i]; {
	case c == '"':
		got = "a string"
	case c == '{':
		got = "an object"
	case c == '[':
		got = "an array"
	case c == 't' || c == 'f':
		got = "a boolean"
	case c == 'n':
		got = "null"
	case c == '-' || c-'0' <= 9:
		got = "a number"
	default:
		return d.Unexpected(i, "a value")
	}
	return wrong(path, i, "want %s, got %s", want, got)
}
