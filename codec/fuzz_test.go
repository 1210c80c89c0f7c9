// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/jsonscan"
)

// FuzzDecode feeds bodies to the decoder of any message. What decodes is JSON, can be written again, and says the same
// when it is read once more; what is refused as invalid JSON is just that.
func FuzzDecode(f *testing.F) {
	c := New(catalog.New())
	all := envelopes(f)
	for i, e := range all {
		s := newSource(int64(i))
		for range 3 {
			f.Add(uint8(i), []byte(marshal(s.envelope(e))))
		}
	}
	f.Add(uint8(0), requestItems(1))
	for _, body := range []string{``, `{`, `{"kind":"x"}`, `{"items":null,"new":{"a":[1,2,{}]}}`,
		`{"settings":{"a":null}}`, `{"message":"\ud83d\ude00"}`} {
		for i := range all {
			f.Add(uint8(i), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, body []byte) {
		e := all[int(which)%len(all)]
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		m := e.message.New().Interface()
		if err := c.Decode(body, m); err != nil {
			var codecErr *Error
			if !errors.As(err, &codecErr) {
				t.Fatalf("error of type %T: %v", err, err)
			}
			if codecErr.Offset < 0 || codecErr.Offset > int64(len(body)) || !utf8.ValidString(err.Error()) ||
				len(err.Error()) > 1<<10+len(body) {
				t.Fatalf("strange error %+v", codecErr)
			}
			if codecErr.Path == "" && validJSON(body) && body[jsonscan.Space(body, 0)] == '{' && !isLimit(err) {
				t.Fatalf("valid JSON was refused: %v", err)
			}
			return
		}
		if !validJSON(body) {
			t.Fatal("invalid JSON was accepted")
		}
		if err := c.Check(m); err != nil {
			t.Fatalf("check: %v", err)
		}
		again, err := c.Append(nil, m)
		if err != nil {
			t.Fatalf("append: %v", err)
		}
		if !validJSON(again) {
			t.Fatalf("wrote invalid JSON: %s", again)
		}
		m2 := e.message.New().Interface()
		if err := c.Decode(again, m2); err != nil {
			t.Fatalf("decode again: %v\n%s", err, again)
		}
		fill(tab, reflect.ValueOf(m).Elem())
		if !proto.Equal(m, m2) {
			t.Fatalf("changed:\n%v\n%v", m, m2)
		}
		encoded, err := c.Encode(m2)
		if err != nil || !bytes.Equal(encoded.Bytes(), again) {
			t.Fatalf("encode (error %v):\n%s\n%s", err, encoded.Bytes(), again)
		}
	})
}

// validJSON reports whether b is JSON for encoding/json, and UTF-8.
func validJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

// isLimit reports whether an error is one that JSON itself does not know.
func isLimit(err error) bool {
	return strings.HasSuffix(err.Error(), "nested deeper than 1000") ||
		strings.HasSuffix(err.Error(), "half of a surrogate pair")
}

// fill adds the empty objects that are written where a message that is always written is absent.
func fill(tab *table, rv reflect.Value) {
	for i := range tab.fields {
		f := &tab.fields[i]
		switch f.shape {
		case shapeMessage:
			if f.always && rv.Field(f.index).IsNil() {
				rv.Field(f.index).Set(reflect.New(f.message.goType))
			}
			if !rv.Field(f.index).IsNil() {
				fill(f.message, rv.Field(f.index).Elem())
			}
		case shapeList:
			for j := range rv.Field(f.index).Len() {
				fill(f.message, rv.Field(f.index).Index(j).Elem())
			}
		}
	}
}
