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

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/network/wire"
)

// An element of a list takes two bytes of a body, {}, and up to 300 of memory.
var (
	decodeMemory = alloctest.Bound{Base: 64 << 10, PerByte: 256}
	encodeMemory = alloctest.Bound{Base: 64 << 10, PerByte: 256}
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
		var err error
		decodeMemory.Check(t, len(body), func() { err = c.Decode(body, m) })
		if err != nil {
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
		var again []byte
		encodeMemory.Check(t, len(body), func() { again, err = c.Append(nil, m) })
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
		fill(tab, messageOf(reflect.ValueOf(m)))
		if !proto.Equal(m, m2) {
			t.Fatalf("changed:\n%v\n%v", m, m2)
		}
		encoded, err := c.Encode(m2)
		if err != nil || !bytes.Equal(encoded.Bytes(), again) {
			t.Fatalf("encode (error %v):\n%s\n%s", err, encoded.Bytes(), again)
		}
	})
}

// FuzzMessage feeds bytes to every message as gRPC receives it. What passes Check can be written as JSON, which says the
// same when it is read: raw objects and unknown members of a peer are JSON, or the message is refused.
func FuzzMessage(f *testing.F) {
	c := New(catalog.New())
	all := envelopes(f)
	add := func(which int, m proto.Message) {
		text, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(which), text)
	}
	for i, e := range all {
		s := newSource(int64(i))
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		for range 3 {
			tree := parse(f, marshal(s.envelope(e)))
			inject(s, tab, tree.(map[string]any))
			m := e.message.New().Interface()
			if err := c.Decode(marshal(tree), m); err != nil {
				f.Fatal(err)
			}
			add(i, m)
		}
		// Raw values that are no JSON, two of them, and none.
		for _, raw := range []string{"{", "{} {}", " ", "\xff", `{"a":1,}`} {
			m := e.message.New()
			members := m.Descriptor().Fields().ByName("unknown_members")
			entry := m.Mutable(members).Map().NewValue()
			entry.Message().Set(entry.Message().Descriptor().Fields().ByName("raw"), protoreflect.ValueOfBytes([]byte(raw)))
			m.Mutable(members).Map().Set(protoreflect.ValueOfString("new").MapKey(), entry)
			add(i, m.Interface())
		}
		// A raw object that is null, which is read as none.
		if cluster := e.message.Descriptor().Fields().ByName("cluster"); cluster != nil && cluster.Message() != nil {
			m := e.message.New()
			raw := m.Mutable(cluster).Message()
			if field := raw.Descriptor().Fields().ByName("raw"); field != nil {
				raw.Set(field, protoreflect.ValueOfBytes([]byte("null")))
				add(i, m.Interface())
			}
		}
	}
	messages := wire.New()
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		e := all[int(which)%len(all)]
		m := e.message.New().Interface()
		var err error
		decodeMemory.Check(t, len(text), func() {
			if err = messages.Unmarshal(mem.BufferSlice{mem.SliceBuffer(text)}, m); err == nil {
				err = c.Check(m)
			}
		})
		if err != nil {
			if !utf8.ValidString(err.Error()) || len(err.Error()) > 1<<10+len(text) {
				t.Fatalf("strange error %q", err)
			}
			return
		}
		var written []byte
		encodeMemory.Check(t, len(text), func() { written, err = c.Append(nil, m) })
		if err != nil {
			t.Fatalf("a message that was checked cannot be written: %v\n%v", err, m)
		}
		if !validJSON(written) {
			t.Fatalf("wrote invalid JSON: %s", written)
		}
		read := e.message.New().Interface()
		if err := c.Decode(written, read); err != nil {
			t.Fatalf("cannot read what was written: %v\n%s", err, written)
		}
		again, err := c.Append(nil, read)
		if err != nil || compact(t, again) != compact(t, written) {
			t.Fatalf("changed (error %v):\n%s\n%s", err, written, again)
		}
	})
}

// compact returns JSON without the white space around values, which is not kept.
func compact(t *testing.T, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, text); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// validJSON reports whether b is JSON for encoding/json, and UTF-8.
func validJSON(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

// isLimit reports whether an error is one that JSON itself does not know.
func isLimit(err error) bool {
	return strings.HasSuffix(err.Error(), "nested deeper than 1000") ||
		strings.HasSuffix(err.Error(), "half of a surrogate pair")
}

// fill adds the empty objects that are written where a message that is always written is absent.
func fill(tab *table, m message) {
	for i := range tab.fields {
		f := &tab.fields[i]
		switch f.shape {
		case shapeMessage:
			if f.always && m.child(f).isNil() {
				m.setChild(f, newMessage(f.message))
			}
			if inner := m.child(f); !inner.isNil() {
				fill(f.message, inner)
			}
		case shapeList:
			for _, inner := range m.children(f) {
				fill(f.message, inner)
			}
		}
	}
}
