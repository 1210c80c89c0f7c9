// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// A message whose size is known is written as any other, whatever its size, and without going through it again.
func TestSized(t *testing.T) {
	for _, size := range []int{0, 100, 5000, 3 * pieceSize} {
		m := &hooksv1alpha1.GeneratePatchesRequest{Settings: map[string]string{"a": strings.Repeat("d", size)}}
		m.Items = []*hooksv1alpha1.GeneratePatchesRequestItem{{Object: &hooksv1alpha1.RawExtension{Raw: make([]byte, size)}}}
		known := SizeOf(m)
		got, err := New().Marshal(known)
		if err != nil {
			t.Fatal(err)
		}
		want, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if known.Size != len(want) || got.Len() != len(want) {
			t.Errorf("%d bytes of a known size of %d, want %d", got.Len(), known.Size, len(want))
		}
		read := &hooksv1alpha1.GeneratePatchesRequest{}
		if err := New().Unmarshal(got, read); err != nil || !proto.Equal(read, m) {
			t.Errorf("it reads as another message: %v", err)
		}
		got.Free()
	}
	if _, err := New().Marshal(SizeOf(&hooksv1alpha1.GeneratePatchesRequest{Handler: "\xff" + strings.Repeat("x", 5000)})); err == nil {
		t.Error("a text that is not UTF-8 is written")
	}
}

// rest is fields of a message in pieces of a size.
type rest struct {
	text []byte
	size int
}

func (r rest) Size() int { return len(r.text) }

func (r rest) WriteTo(w io.Writer) (int64, error) {
	for piece := range slices.Chunk(r.text, r.size) {
		if n, err := w.Write(piece); n < len(piece) || err != nil {
			return 0, fmt.Errorf("wrote %d of %d bytes: %w", n, len(piece), err)
		}
	}
	return int64(len(r.text)), nil
}

// A message and its rest are read as one, whatever their sizes.
func TestRest(t *testing.T) {
	for _, own := range []int{0, 10, pieceSize, 3 * pieceSize} {
		for _, more := range []int{0, 1, 100, pieceSize, 3*pieceSize + 1} {
			for _, size := range []int{7, 1 << 20} {
				m := &hooksv1alpha1.GeneratePatchesRequest{Settings: map[string]string{"a": strings.Repeat("d", own)}}
				lacks := &hooksv1alpha1.GeneratePatchesRequest{
					Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{Uid: "u", Object: &hooksv1alpha1.RawExtension{Raw: make([]byte, more)}}},
				}
				text, err := proto.Marshal(lacks)
				if err != nil {
					t.Fatal(err)
				}
				whole := SizeOf(m).With(rest{text, size})
				data, err := New().Marshal(whole)
				if err != nil {
					t.Fatal(err)
				}
				got := &hooksv1alpha1.GeneratePatchesRequest{}
				err = New().Unmarshal(data, got)
				m.Items = lacks.Items
				if err != nil || data.Len() != whole.Size || !proto.Equal(got, m) {
					t.Errorf("%d bytes and %d in pieces of %d: got %d bytes of %d, %v", own, more, size, data.Len(), whole.Size, err)
				}
				data.Free()
			}
		}
	}
}

// A rest that cannot be written is an error.
func TestRestFails(t *testing.T) {
	if data, err := New().Marshal(SizeOf(&hooksv1alpha1.GeneratePatchesRequest{}).With(failing{})); err == nil || data != nil {
		t.Errorf("got %d bytes, %v", data.Len(), err)
	}
}

type failing struct{}

func (failing) Size() int                        { return 1 }
func (failing) WriteTo(io.Writer) (int64, error) { return 0, errors.New("no") }

func BenchmarkMarshal(b *testing.B) {
	m := &hooksv1alpha1.GeneratePatchesRequest{}
	for range 100 {
		m.Items = append(m.Items, &hooksv1alpha1.GeneratePatchesRequestItem{
			Uid: "u", Object: &hooksv1alpha1.RawExtension{Raw: make([]byte, 2000)},
			HolderReference: &hooksv1alpha1.HolderReference{ApiVersion: "v1", Kind: "K", Name: "n", Namespace: "ns", FieldPath: "f"},
			Variables:       []*hooksv1alpha1.Variable{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		})
	}
	b.SetBytes(int64(proto.Size(m)))
	for b.Loop() {
		data, err := New().Marshal(SizeOf(m))
		if err != nil {
			b.Fatal(err)
		}
		data.Free()
	}
}
