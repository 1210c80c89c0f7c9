// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/body"
)

// zipped returns a message with a name of size bytes as unchanged returns it.
func zipped(t *testing.T, size int) mem.BufferSlice {
	t.Helper()
	text, err := proto.Marshal(&hooksv1alpha1.BeforeClusterCreateRequest{Handler: strings.Repeat("n", size)})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	same, err := unchanged{}.Do(pieces(b.Bytes()).Reader())
	if err != nil || !bytes.Equal(same, b.Bytes()) {
		t.Fatalf("%d bytes became %d: %v", b.Len(), len(same), err)
	}
	return mem.BufferSlice{mem.SliceBuffer(same)}
}

// What a compressed message takes is reserved before it is inflated, and nothing of one that is refused is.
func TestInflate(t *testing.T) {
	full := errors.New("the memory is used up")
	const large = 19 << 20
	for name, tc := range map[string]struct {
		size      int
		memory    int64 // that there is
		want      error
		allocates uint64
	}{
		"small":        {size: 1000, allocates: 1 << 20},
		"large":        {size: large, memory: 3 * large, allocates: 4 * large},
		"refused":      {size: large, memory: 1 << 20, want: full, allocates: 4 << 20},
		"beyond":       {size: limits.BodyBytes, memory: 5 * large, want: body.ErrTooLarge, allocates: 5 * large},
		"without room": {size: large, want: full, allocates: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			data, left := zipped(t, tc.size), tc.memory
			var got hooksv1alpha1.BeforeClusterCreateRequest
			m := &Message{Message: &got, Reserve: func(n int64) error {
				if left -= n; left < 0 {
					return full
				}
				return nil
			}}
			alloctest.Bound{Base: tc.allocates}.Check(t, 0, func() {
				if err := New().Unmarshal(data, m); err != nil {
					t.Error(err)
				}
			})
			if !errors.Is(m.Err, tc.want) {
				t.Fatalf("got %v, want %v", m.Err, tc.want)
			}
			if tc.want == nil && (len(got.GetHandler()) != tc.size || m.Size < tc.size) {
				t.Errorf("%d of %d bytes came", len(got.GetHandler()), tc.size)
			}
		})
	}
}

// A message besides calls, which nothing is reserved for, is small.
func TestMessagesBesidesCalls(t *testing.T) {
	c := bounded()
	plain := func(size int) mem.BufferSlice {
		data, err := c.Marshal(&hooksv1alpha1.BeforeClusterCreateRequest{Handler: strings.Repeat("n", size)})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	const most = limits.SideMessageBytes
	for name, tc := range map[string]struct {
		data mem.BufferSlice
		want error
	}{
		"plain":           {plain(most - 10), nil},
		"plain, beyond":   {plain(most), body.ErrTooLarge},
		"zipped":          {zipped(t, most-10), nil},
		"zipped, beyond":  {zipped(t, most), body.ErrTooLarge},
		"zipped, too far": {zipped(t, 100*most), body.ErrTooLarge},
	} {
		alloctest.Bound{Base: 4 * most}.Check(t, 0, func() {
			if err := c.Unmarshal(tc.data, &hooksv1alpha1.BeforeClusterCreateRequest{}); !errors.Is(err, tc.want) {
				t.Errorf("%s: got %v, want %v", name, err, tc.want)
			}
		})
	}
}

// What says that it is compressed and is not has no message.
func TestNotCompressed(t *testing.T) {
	text, err := proto.Marshal(&hooksv1alpha1.BeforeClusterCreateRequest{Handler: "n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{nil, text} {
		if got, err := (unchanged{}).Do(pieces(text).Reader()); !errors.Is(err, gzip.ErrHeader) {
			t.Errorf("got %q, %v", got, err)
		}
	}
	m := &Message{Message: &hooksv1alpha1.BeforeClusterCreateRequest{}}
	if err := New().Unmarshal(mem.BufferSlice{mem.SliceBuffer("\x1f\x8b and more")}, m); err != nil || !errors.Is(m.Err, body.ErrGzip) {
		t.Errorf("got %v, %v", err, m.Err)
	}
}
