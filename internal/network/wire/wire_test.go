// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// pieces returns b as gRPC receives it: in buffers that end anywhere.
func pieces(b []byte) mem.BufferSlice {
	var s mem.BufferSlice
	for part := range slices.Chunk(b, 1000) {
		s = append(s, mem.SliceBuffer(part))
	}
	return s
}

// built counts the elements of a message that has been built.
func built(m protoreflect.Message) int {
	n := 0
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			n += v.Map().Len()
			if fd.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					n += built(v.Message())
					return true
				})
			}
		case fd.IsList():
			n += v.List().Len()
			for i := 0; fd.Message() != nil && i < v.List().Len(); i++ {
				n += built(v.List().Get(i).Message())
			}
		case fd.Message() != nil:
			n += built(v.Message())
		}
		return true
	})
	return n
}

func items(n int) []byte {
	var b []byte
	for range n {
		b = protowire.AppendBytes(protowire.AppendTag(b, 4, protowire.BytesType), nil)
	}
	return b
}

// At the limit and one beyond, of lists and maps at every level.
func TestElementsLimit(t *testing.T) {
	settings := func(n int) *hooksv1alpha1.GeneratePatchesRequest {
		m := &hooksv1alpha1.GeneratePatchesRequest{Settings: map[string]string{}}
		for i := range n {
			m.Settings[strconv.Itoa(i)] = ""
		}
		return m
	}
	unknown := func(n int) *hooksv1alpha1.GeneratePatchesRequest {
		item := &hooksv1alpha1.GeneratePatchesRequestItem{UnknownMembers: map[string]*hooksv1alpha1.JSON{}}
		for i := range n - 1 {
			item.UnknownMembers[strconv.Itoa(i)] = &hooksv1alpha1.JSON{Raw: []byte("1")}
		}
		return &hooksv1alpha1.GeneratePatchesRequest{Items: []*hooksv1alpha1.GeneratePatchesRequestItem{item}}
	}
	nested := func(n int) *hooksv1alpha1.GeneratePatchesRequest {
		m := &hooksv1alpha1.GeneratePatchesRequest{}
		for range 10 {
			item := &hooksv1alpha1.GeneratePatchesRequestItem{}
			for range (n - 10) / 10 {
				item.Variables = append(item.Variables, &hooksv1alpha1.Variable{})
			}
			m.Items = append(m.Items, item)
		}
		for range n - built(m.ProtoReflect()) {
			m.Variables = append(m.Variables, &hooksv1alpha1.Variable{})
		}
		return m
	}
	for name, of := range map[string]func(int) *hooksv1alpha1.GeneratePatchesRequest{
		"Settings": settings, "Unknown": unknown, "Nested": nested,
	} {
		for n, want := range map[int]error{limits.Elements: nil, limits.Elements + 1: ErrTooMany} {
			m := of(n)
			text, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			got := &hooksv1alpha1.GeneratePatchesRequest{}
			if err := New().Unmarshal(pieces(text), got); !errors.Is(err, want) {
				t.Errorf("%s: %d elements: got %v, want %v", name, n, err, want)
			}
			if want == nil && !proto.Equal(m, got) {
				t.Errorf("%s: the message is another one", name)
			}
			if want != nil && built(got.ProtoReflect()) > 0 {
				t.Errorf("%s: the message was built", name)
			}
		}
	}
}

// TestBombsAllocateLittle reads ten million empty items, which gRPC's own codec would make gigabytes of.
func TestBombsAllocateLittle(t *testing.T) {
	text := items(10_000_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := New().Unmarshal(mem.BufferSlice{mem.SliceBuffer(text)}, &hooksv1alpha1.GeneratePatchesRequest{})
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v", err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 2*uint64(len(text)) {
		t.Errorf("%d MiB were allocated for %d MiB", allocated>>20, len(text)>>20)
	}
}

// Memory is reserved before it is allocated, and not for small messages. A refusal is the error, and nothing is built.
func TestReserve(t *testing.T) {
	full := errors.New("the memory is used up")
	for name, tc := range map[string]struct {
		text []byte
		want []int64
	}{
		"Small": {items(10), nil},
		"Items": {items(50_000), []int64{200_000, 50_000 * elementCost}},
		"Raw": {protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), make([]byte, 1<<20)),
			[]int64{2*(1<<20) + 8}},
	} {
		var reserved []int64
		m := &Message{Message: &hooksv1alpha1.GeneratePatchesRequest{}, Reserve: func(n int64) error {
			reserved = append(reserved, n)
			return nil
		}}
		err := New().Unmarshal(pieces(tc.text), m)
		if diff := cmp.Diff(tc.want, reserved); diff != "" || err != nil || (m.Err != nil) != (name == "Raw") {
			t.Errorf("%s: %v, reserved: -want +got:\n%s", name, err, diff)
		}
		for i := range tc.want {
			calls := 0
			m := &Message{Message: &hooksv1alpha1.GeneratePatchesRequest{}, Reserve: func(int64) error {
				if calls++; calls > i {
					return full
				}
				return nil
			}}
			err := New().Unmarshal(pieces(tc.text), m)
			if err != nil || !errors.Is(m.Err, full) || built(m.Message.ProtoReflect()) > 0 {
				t.Errorf("%s: got %v, %v", name, err, m.Err)
			}
		}
	}
}

func TestBadInput(t *testing.T) {
	m := &hooksv1alpha1.GeneratePatchesRequest{}
	for name, text := range map[string][]byte{
		"HalfATag":      {0x80},
		"HalfAField":    {0x22, 5, 1},
		"BrokenItem":    {0x22, 1, 0x80},
		"EndOfNoGroup":  {0x24},
		"FieldZero":     {0x02, 0},
		"BrokenSetting": {0x12, 2, 0x0a, 9},
	} {
		if err := New().Unmarshal(pieces(text), m); err == nil || errors.Is(err, ErrTooMany) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := New().Unmarshal(nil, "text"); err == nil {
		t.Error("a string was read into")
	}
	// A field of the wrong type is one that the schema does not know.
	if n, err := Count([]byte{0x20, 1}, m.ProtoReflect().Descriptor()); n != 0 || err != nil {
		t.Errorf("a number as an item: %d elements, %v", n, err)
	}
	// A type that contains itself is followed only so far.
	deep := structpb.NewNullValue()
	for range 2 * maxDepth {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	text, err := proto.Marshal(deep)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Count(text, deep.ProtoReflect().Descriptor()); err == nil {
		t.Error("a message of 200 levels was followed to its end")
	}
}

// FuzzCount compares the number of elements on the wire with that of the message that is built of it, for every request
// and answer. Entries of maps with the same key are one entry of the message, and a message in pieces is one message.
func FuzzCount(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(items(3))
	for _, m := range samples() {
		text, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	memory := alloctest.Bound{Base: 64 << 10} // whatever the size
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, m := range samples() {
			got := m.ProtoReflect().New().Interface()
			var n int
			var countErr error
			memory.Check(t, 0, func() { n, countErr = Count(text, got.ProtoReflect().Descriptor()) })
			err := proto.UnmarshalOptions{AllowPartial: true}.Unmarshal(text, got)
			if err != nil {
				continue
			}
			if countErr != nil {
				t.Fatalf("%T: a message that can be built cannot be counted: %v", m, countErr)
			}
			if least := built(got.ProtoReflect()); n < least {
				t.Fatalf("%T: %d elements on the wire, %d in the message", m, n, least)
			}
			// Written anew, nothing occurs twice, and the numbers are the same.
			again, err := proto.MarshalOptions{AllowPartial: true}.Marshal(got)
			if err != nil {
				continue // text that is not UTF-8
			}
			if n, err := Count(again, got.ProtoReflect().Descriptor()); n != built(got.ProtoReflect()) || err != nil {
				t.Fatalf("%T: %d elements on the wire, %v; %d in the message", m, n, err, built(got.ProtoReflect()))
			}
		}
	})
}

func samples() []proto.Message {
	return []proto.Message{
		&hooksv1alpha1.GeneratePatchesRequest{
			Settings: map[string]string{"a": "b"}, Items: []*hooksv1alpha1.GeneratePatchesRequestItem{
				{Variables: []*hooksv1alpha1.Variable{{Name: "v"}}, UnknownMembers: map[string]*hooksv1alpha1.JSON{"n": {Raw: []byte("1")}}},
			},
		},
		&hooksv1alpha1.DiscoverVariablesResponse{Variables: []*hooksv1alpha1.ClusterClassVariable{
			{DeprecatedV1Beta1Metadata: &hooksv1alpha1.ClusterClassVariableMetadata{Labels: map[string]string{"l": "1"}}},
		}},
		&hooksv1alpha1.DiscoveryResponse{Handlers: []*hooksv1alpha1.ExtensionHandler{{Name: "h"}, {}}},
		&hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{}},
	}
}

// The codec writes and reads what gRPC's own does, under the same name.
func TestCodecIsProto(t *testing.T) {
	for _, m := range samples() {
		data, err := New().Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got := m.ProtoReflect().New().Interface()
		if err := New().Unmarshal(data, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, protocmp.Transform()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if name := New().Name(); name != "proto" {
		t.Errorf("the codec is called %q", name)
	}
}

// What the largest elements take is reserved: items with all that is within them, of which the peer writes six bytes.
func TestReserveOfLargeElements(t *testing.T) {
	item := &hooksv1alpha1.GeneratePatchesRequestItem{
		HolderReference: &hooksv1alpha1.HolderReference{}, Object: &hooksv1alpha1.RawExtension{},
	}
	request := &hooksv1alpha1.GeneratePatchesRequest{}
	for range limits.Elements {
		request.Items = append(request.Items, item)
	}
	text, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var reserved int64
	m := &Message{Message: &hooksv1alpha1.GeneratePatchesRequest{}, Reserve: func(n int64) error {
		reserved += n
		return nil
	}}
	alloctest.Bound{Base: limits.Elements*elementCost + 4<<20}.Check(t, 0, func() { m.Err = m.unmarshal(pieces(text), nil) })
	if m.Err != nil || reserved < limits.Elements*elementCost {
		t.Errorf("%d bytes were reserved, %v", reserved, m.Err)
	}
}
