// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package answercache

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"slices"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Digest makes the Key of what is written to it. Each value has its length, so that no two sequences of values have the
// same Key.
type Digest struct{ hash hash.Hash }

// NewDigest returns the Digest of nothing.
func NewDigest() Digest { return Digest{sha256.New()} }

// Key returns the Key of what was written.
func (d Digest) Key() (k Key) {
	d.hash.Sum(k[:0])
	return k
}

func (d Digest) number(n uint64) {
	var b [8]byte
	_, _ = d.hash.Write(binary.BigEndian.AppendUint64(b[:0], n))
}

// Text writes a string.
func (d Digest) Text(s string) {
	d.number(uint64(len(s)))
	_, _ = io.WriteString(d.hash, s)
}

// Bytes writes bytes.
func (d Digest) Bytes(b []byte) {
	d.number(uint64(len(b)))
	_, _ = d.hash.Write(b)
}

// Message writes all fields of a message but those with these names, in the order of the descriptor, so that equal
// messages have equal keys. Large bytes are not copied, as they would be by proto.Marshal.
func (d Digest) Message(m protoreflect.Message, without ...protoreflect.Name) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) || slices.Contains(without, f.Name()) {
			continue
		}
		d.number(uint64(f.Number()))
		switch v := m.Get(f); {
		case f.IsList():
			d.number(uint64(v.List().Len()))
			for i := range v.List().Len() {
				d.value(f, v.List().Get(i))
			}
		case f.IsMap():
			d.entries(f, v.Map())
		default:
			d.value(f, v)
		}
	}
	d.number(0) // no field has this number: the message ends
	d.Bytes(m.GetUnknown())
}

// entries writes a map whose keys are strings, as all maps of the contract have.
func (d Digest) entries(f protoreflect.FieldDescriptor, entries protoreflect.Map) {
	var keys []protoreflect.MapKey
	for k := range entries.Range {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
	d.number(uint64(len(keys)))
	for _, k := range keys {
		d.Text(k.String())
		d.value(f.MapValue(), entries.Get(k))
	}
}

// value writes one value of a field.
func (d Digest) value(f protoreflect.FieldDescriptor, v protoreflect.Value) {
	switch f.Kind() {
	case protoreflect.MessageKind, protoreflect.GroupKind:
		d.Message(v.Message())
	case protoreflect.BytesKind:
		d.Bytes(v.Bytes())
	default:
		d.Text(v.String())
	}
}
