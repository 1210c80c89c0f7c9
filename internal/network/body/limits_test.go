// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

// incompressible returns n random bytes, which gzip makes larger.
func incompressible(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestLimits reads bodies of exactly the limit and of one byte more, plain and compressed, of stated and unknown
// length.
func TestLimits(t *testing.T) {
	const limit = 64 << 10
	atLimit, beyond := incompressible(limit), incompressible(limit+1)
	small := incompressible(limit / 2)
	zipped := zip(t, small)
	for name, tc := range map[string]struct {
		reason   string
		content  []byte
		stated   bool
		encoding string
		max      int
		want     []byte
		err      error
		wire     int
	}{
		"StatedAtLimit": {"the limit is allowed", atLimit, true, "", limit, atLimit, nil, limit},
		"StatedBeyond": {
			"the stated length alone is refused, and nothing is read", beyond, true, "", limit, nil, ErrTooLarge, 0,
		},
		"UnknownAtLimit":  {"the limit is allowed", atLimit, false, "", limit, atLimit, nil, limit},
		"UnknownBeyond":   {"one byte more is refused", beyond, false, "", limit, nil, ErrTooLarge, limit},
		"IdentityAtLimit": {"identity is no compression", atLimit, true, " Identity ", limit, atLimit, nil, limit},
		"GzipBoth": {
			"the wire is under the limit, too", zipped, true, "gzip", len(zipped), small, nil, len(zipped),
		},
		"GzipStatedWire": {
			"a compressed body is refused by its stated length", zipped, true, "gzip", len(zipped) - 1, nil,
			ErrTooLarge, 0,
		},
		"GzipWire": {
			"and by its length", zipped, false, "x-gzip", len(zipped) - 1, nil, ErrTooLarge, len(zipped) - 1,
		},
		"GzipContent": {
			"what it decompresses to is at the limit", zip(t, make([]byte, limit)), false, "gzip", limit,
			make([]byte, limit), nil, 0,
		},
		"GzipBeyond": {
			"what it decompresses to is one byte more", zip(t, make([]byte, limit+1)), false, "gzip", limit, nil,
			ErrTooLarge, 0,
		},
		"GzipOfNothing": {"no bytes are a body, too", zip(t, nil), false, "gzip", limit, nil, nil, 0},
		"Nothing":       {"a limit of nothing allows nothing", nil, true, "", 0, nil, nil, 0},
		"NotNothing":    {"and not one byte", []byte("x"), false, "", 0, nil, ErrTooLarge, 0},
	} {
		t.Run(name, func(t *testing.T) {
			length := int64(-1)
			if tc.stated {
				length = int64(len(tc.content))
			}
			for _, source := range []io.Reader{
				bytes.NewReader(tc.content), iotest.DataErrReader(bytes.NewReader(tc.content)),
				iotest.HalfReader(bytes.NewReader(tc.content)),
			} {
				got, err := (&Reader{Max: int64(tc.max)}).Read(source, length, tc.encoding, Guard{})
				if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
					t.Fatalf("%s: got error %v, want %v", tc.reason, err, tc.err)
				}
				if err == nil && !bytes.Equal(got.Bytes, tc.want) {
					t.Errorf("%s: got %d bytes, want %d", tc.reason, len(got.Bytes), len(tc.want))
				}
				if (tc.wire != 0 || tc.err == nil && tc.encoding == "") && got.Wire != int64(tc.wire) {
					t.Errorf("%s: got %d bytes on the wire, want %d", tc.reason, got.Wire, tc.wire)
				}
			}
		})
	}
}

func TestUnsupportedEncodingIsNamed(t *testing.T) {
	b, err := (&Reader{Max: 10}).Read(strings.NewReader("x"), 1, "gzip, br", Guard{})
	if want := `Content-Encoding is not supported: "gzip, br"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if b.Wire != 0 {
		t.Errorf("%d bytes were read", b.Wire)
	}
}

// An error of the connection says nothing about the compression.
func TestSourceErrorsAreNotOfGzip(t *testing.T) {
	broken := errors.New("connection broke")
	zipped := zip(t, incompressible(1000))
	for _, n := range []int{0, 5, 500} {
		src := io.MultiReader(bytes.NewReader(zipped[:n]), iotest.ErrReader(broken))
		if _, err := (&Reader{Max: 1 << 20}).Read(src, -1, "gzip", Guard{}); !errors.Is(err, broken) || errors.Is(err, ErrGzip) {
			t.Errorf("after %d bytes: got %v, want %v", n, err, broken)
		}
	}
	damaged := bytes.Clone(zipped)
	damaged[10] |= 0x06 // a block type that does not exist
	if _, err := (&Reader{Max: 1 << 20}).Read(bytes.NewReader(damaged), -1, "gzip", Guard{}); !errors.Is(err, ErrGzip) {
		t.Errorf("a damaged block: got %v, want %v", err, ErrGzip)
	}
}

// A body that is kept outlives its Release, and what the pool hands out next is not the same memory.
func TestKeptBodiesAreNotPooled(t *testing.T) {
	content := incompressible(smallest)
	for name, length := range map[string]int64{"Stated": smallest, "Unknown": -1} {
		r := &Reader{Max: 1 << 20, Pool: &Pool{}, Keep: true}
		kept, err := r.Read(bytes.NewReader(content), length, "", Guard{})
		if err != nil {
			t.Fatal(err)
		}
		if name == "Unknown" && cap(kept.Bytes) > len(content)+len(content)/8 {
			t.Errorf("%s: %d bytes take %d", name, len(content), cap(kept.Bytes))
		}
		kept.Release()
		for range 4 {
			if _, err := r.Read(bytes.NewReader(make([]byte, smallest)), length, "", Guard{}); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(kept.Bytes, content) {
			t.Errorf("%s: a kept body was overwritten", name)
		}
	}
}

// A body that was not released yet shares no memory with the next one.
func TestPooledBodiesAreApartUntilReleased(t *testing.T) {
	r := &Reader{Max: 1 << 20, Pool: &Pool{}}
	content := incompressible(3 * smallest)
	for _, length := range []int64{int64(len(content)), -1} {
		first, err := r.Read(bytes.NewReader(content), length, "", Guard{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := r.Read(bytes.NewReader(make([]byte, len(content))), length, "", Guard{})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes, content) {
			t.Error("the second body overwrote the first")
		}
		first.Release()
		second.Release()
		if first.Bytes != nil {
			t.Error("a released body still has its bytes")
		}
	}
}

// The room for a body of a stated length is exact up to the most that is made before anything has come.
func TestFirstRoom(t *testing.T) {
	for _, tc := range []struct {
		length int64
		want   int
	}{{0, 1}, {1000, 1001}, {maxFirstBuffer - 1, maxFirstBuffer}, {maxFirstBuffer, maxFirstBuffer + 1}, {maxFirstBuffer + 1, maxFirstBuffer + 1}, {1 << 24, maxFirstBuffer + 1}, {-1, defaultFirstBuffer + 1}} {
		src := &meter{}
		_, err := (&Reader{Max: 20 << 20}).Read(src, tc.length, "", Guard{})
		if (err == nil) != (tc.length <= 0) {
			t.Errorf("length %d: %v", tc.length, err)
		}
		if src.largest != tc.want {
			t.Errorf("length %d: there was room for %d bytes, want %d", tc.length, src.largest, tc.want)
		}
	}
}

func TestPoolBounds(t *testing.T) {
	p := &Pool{}
	for n, want := range map[int]int{
		1: 1, smallest - 1: smallest - 1, smallest: smallest, smallest + 1: smallest * 5 / 4, largest: largest,
		largest + 1: largest + 1,
	} {
		if got := p.get(n); cap(got) != want || len(got) < n {
			t.Errorf("get(%d): len %d, cap %d, want cap %d", n, len(got), cap(got), want)
		}
		if got := (*Pool)(nil).get(n); len(got) != n || cap(got) != n {
			t.Errorf("nil pool: get(%d): len %d, cap %d", n, len(got), cap(got))
		}
	}
	for n, want := range map[int]int{
		smallest: 3, smallest + 1: 4, 2 * smallest: 7, largest: len(p.classes) - 1, smallest - 1: -1, largest + 1: -1,
	} {
		if class, _ := classOf(n); class != want {
			t.Errorf("classOf(%d) = %d, want %d", n, class, want)
		}
	}
	(*Pool)(nil).put(make([]byte, smallest))
	p.put(make([]byte, smallest+1)) // of no class
	if got := p.get(smallest + 1); cap(got) != smallest*5/4 {
		t.Errorf("a buffer that the pool did not make came out of it: cap %d", cap(got))
	}
}
