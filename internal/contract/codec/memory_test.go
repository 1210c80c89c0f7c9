// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"reflect"
	"sync"
	"testing"
	"unsafe"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// raws calls f with every raw object and free value of a message.
func raws(m protoreflect.Message, f func([]byte)) {
	switch m := m.Interface().(type) {
	case *hooksv1alpha1.RawExtension:
		f(m.Raw)
		return
	case *hooksv1alpha1.JSON:
		f(m.Raw)
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() && fd.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { raws(v.Message(), f); return true })
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				raws(v.List().Get(i).Message(), f)
			}
		default:
			raws(v.Message(), f)
		}
		return true
	})
}

// TestOnlyRawObjectsAliasTheBody overwrites all of a decoded body but its raw objects: the message must not change.
// Bodies are pooled, so that a string which aliased one would become another request's.
func TestOnlyRawObjectsAliasTheBody(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(e.name) + 2
			s := newSource(seed)
			tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
			for range 50 {
				tree := parse(t, marshal(s.envelope(e)))
				inject(s, tab, tree.(map[string]any))
				body := marshal(tree)
				m := e.message.New().Interface()
				if err := c.Decode(body, m); err != nil {
					failf(t, seed, body, "decode: %v", err)
				}
				want := proto.Clone(m) // copies what aliases the body, too
				for i, kept := range aliased(t, body, m) {
					if !kept {
						body[i] = '#'
					}
				}
				if !proto.Equal(want, m) {
					failf(t, seed, body, "something else aliases the body:\n%v\n%v", want, m)
				}
			}
		})
	}
}

// aliased returns which bytes of body belong to a raw object of m. All raw objects have to alias body.
func aliased(t *testing.T, body []byte, m proto.Message) []bool {
	t.Helper()
	kept := make([]bool, len(body))
	start := uintptr(unsafe.Pointer(unsafe.SliceData(body)))
	raws(m.ProtoReflect(), func(raw []byte) {
		offset := uintptr(unsafe.Pointer(unsafe.SliceData(raw))) - start
		if offset >= uintptr(len(body)) || cap(raw) != len(raw) {
			t.Fatalf("%s is a copy, or can grow into the body", raw)
		}
		for i := range raw {
			kept[int(offset)+i] = true
		}
	})
	return kept
}

// TestNothingWritesToItsInput compares bodies and messages with deep copies of them, after every use at the same time.
func TestNothingWritesToItsInput(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		s := newSource(seedOf(e.name) + 3)
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		for range 5 {
			tree := parse(t, marshal(s.envelope(e)))
			inject(s, tab, tree.(map[string]any))
			body := marshal(tree)
			before := bytes.Clone(body)
			m := e.message.New().Interface()
			if err := c.Decode(body, m); err != nil {
				t.Fatal(err)
			}
			message := proto.Clone(m)
			var uses sync.WaitGroup
			for range 4 {
				uses.Go(func() {
					if _, err := c.Encode(m); err != nil {
						t.Error(err)
					}
					if _, err := c.Append(nil, m); err != nil {
						t.Error(err)
					}
					if err := c.Check(m); err != nil {
						t.Error(err)
					}
				})
			}
			uses.Wait()
			if !bytes.Equal(before, body) {
				t.Errorf("%s: the body was changed from\n%s\nto\n%s", e.name, before, body)
			}
			if !proto.Equal(message, m) {
				t.Errorf("%s: the message was changed from\n%v\nto\n%v", e.name, message, m)
			}
		}
	}
}

func TestDecodeReportsKindAndAPIVersion(t *testing.T) {
	const kind, version = `"kind":"GeneratePatchesRequest"`, `"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"`
	tests := map[string]struct {
		body string
		want bool
	}{
		"Both":          {`{` + kind + `,` + version + `}`, true},
		"OtherOrder":    {`{"items":[],` + version + `,"new":1,` + kind + `}`, true},
		"Escaped":       {`{"\u006bind":"GeneratePatches\u0052equest",` + version + `}`, true},
		"OnlyKind":      {`{` + kind + `}`, false},
		"OnlyVersion":   {`{` + version + `}`, false},
		"Neither":       {`{}`, false},
		"EmptyKind":     {`{"kind":"",` + version + `}`, false},
		"NullKind":      {`{"kind":null,` + version + `}`, false},
		"EmptyVersion":  {`{` + kind + `,"apiVersion":""}`, false},
		"NullVersion":   {`{` + kind + `,"apiVersion":null}`, false},
		"InsideAnItem":  {`{"items":[{"holderReference":{` + kind + `,` + version + `}}]}`, false},
		"InsideUnknown": {`{"new":{` + kind + `,` + version + `}}`, false},
	}
	c := New(catalog.New())
	for name, tc := range tests {
		got, err := c.DecodeGuarded([]byte(tc.body), &hooksv1alpha1.GeneratePatchesRequest{}, Guard{})
		if err != nil || got != tc.want {
			t.Errorf("%s: got %t, %v, want %t", name, got, err, tc.want)
		}
	}
}
