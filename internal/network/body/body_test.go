// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
)

func zip(t testing.TB, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRead(t *testing.T) {
	const limit = 1 << 20
	broken := errors.New("connection broke")
	big := bytes.Repeat([]byte("0123456789abcdef"), limit/16)
	zipped := zip(t, big)
	damaged := bytes.Clone(zipped)
	damaged[len(damaged)-6] ^= 1 // in the checksum
	tests := map[string]struct {
		reason   string
		source   func() io.Reader
		length   int64
		encoding string
		want     []byte
		err      error
		wire     int64
	}{
		"Known": {
			reason: "a small body of known size", source: func() io.Reader { return strings.NewReader("hello") },
			length: 5, want: []byte("hello"), wire: 5,
		},
		"Unknown": {
			reason: "a body of unknown size", source: func() io.Reader { return bytes.NewReader(big) }, length: -1,
			want: big, wire: limit,
		},
		"Large": {
			reason: "exactly the limit is allowed", source: func() io.Reader { return bytes.NewReader(big) },
			length: limit, want: big, wire: limit,
		},
		"Empty": {
			reason: "nothing is something too", source: func() io.Reader { return strings.NewReader("") }, length: 0,
			want: nil,
		},
		"ByteByByte": {
			reason: "however it comes",
			source: func() io.Reader { return iotest.OneByteReader(strings.NewReader("hello")) }, length: 5,
			want: []byte("hello"), wire: 5,
		},
		"DataWithEOF": {
			reason: "the end may come with the last bytes",
			source: func() io.Reader { return iotest.DataErrReader(strings.NewReader("hello")) }, length: -1,
			want: []byte("hello"), wire: 5,
		},
		"Short": {
			reason: "less than was said is no body", source: func() io.Reader { return strings.NewReader("hell") },
			length: 5, err: io.ErrUnexpectedEOF, wire: 4,
		},
		"TooLargeByWord": {
			reason: "what is said is enough to refuse", source: func() io.Reader { return strings.NewReader("") },
			length: limit + 1, err: ErrTooLarge,
		},
		"TooLarge": {
			reason: "one byte too many",
			source: func() io.Reader { return io.MultiReader(bytes.NewReader(big), strings.NewReader("x")) },
			length: -1, err: ErrTooLarge, wire: limit,
		},
		"Broken": {
			reason: "the source's own error stays", source: func() io.Reader { return iotest.ErrReader(broken) },
			length: -1, err: broken,
		},
		"Gzip": {
			reason: "gzip is unpacked", source: func() io.Reader { return bytes.NewReader(zipped) },
			length: int64(len(zipped)), encoding: "gzip", want: big, wire: int64(len(zipped)),
		},
		"GzipBomb": {
			reason: "the limit holds for what is unpacked",
			source: func() io.Reader { return bytes.NewReader(zip(t, append(big, 'x'))) }, length: -1, encoding: "GZIP",
			err: ErrTooLarge,
		},
		"GzipMembers": {
			reason: "several members are one body",
			source: func() io.Reader { return bytes.NewReader(bytes.Repeat(zip(t, big[:limit/2]), 2)) }, length: -1,
			encoding: "gzip", want: big,
		},
		"GzipMembersBomb": {
			reason: "and are limited as one",
			source: func() io.Reader { return bytes.NewReader(bytes.Repeat(zip(t, big[:limit/2]), 3)) }, length: -1,
			encoding: "gzip", err: ErrTooLarge,
		},
		"NotGzip": {
			reason: "not what it says", source: func() io.Reader { return strings.NewReader("hello, world") },
			length: -1, encoding: "gzip", err: ErrGzip, wire: 12,
		},
		"HalfAGzip": {
			reason: "an end before the end",
			source: func() io.Reader { return bytes.NewReader(zipped[:len(zipped)-4]) }, length: -1, encoding: "gzip",
			err: io.ErrUnexpectedEOF,
		},
		"CorruptGzip": {
			reason: "damage is seen", source: func() io.Reader { return bytes.NewReader(damaged) }, length: -1,
			encoding: "gzip", err: ErrGzip,
		},
		"OtherEncoding": {
			reason: "nothing else is unpacked", source: func() io.Reader { return strings.NewReader("x") }, length: 1,
			encoding: "br", err: ErrEncoding,
		},
	}
	pool := &Pool{}
	for name, tc := range tests {
		for how, r := range map[string]*Reader{
			"": {Max: limit}, "Pooled": {Max: limit, Pool: pool}, "Kept": {Max: limit, Pool: pool, Keep: true},
		} {
			t.Run(name+how, func(t *testing.T) {
				got, err := r.Read(tc.source(), tc.length, tc.encoding, Guard{})
				if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
					t.Fatalf("%s: got error %v, want %v", tc.reason, err, tc.err)
				}
				if err == nil && !bytes.Equal(got.Bytes, tc.want) {
					t.Errorf("%s: got %d bytes, want %d", tc.reason, len(got.Bytes), len(tc.want))
				}
				if tc.wire != 0 && got.Wire != tc.wire {
					t.Errorf("%s: %d bytes came, says %d", tc.reason, tc.wire, got.Wire)
				}
				got.Release()
				got.Release() // does nothing
			})
		}
	}
}

func TestStatedLengthAloneTakesLittleMemory(t *testing.T) {
	src := &meter{}
	if _, err := (&Reader{Max: 20 << 20}).Read(src, 20<<20, "", Guard{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if src.largest > maxFirstBuffer+1 {
		t.Errorf("room for %d bytes was made before anything came", src.largest)
	}
}

// meter records the largest buffer that it was given, and is at its end.
type meter struct{ largest int }

func (m *meter) Read(p []byte) (int, error) {
	m.largest = max(m.largest, len(p))
	return 0, io.EOF
}

func TestClasses(t *testing.T) {
	for range 100_000 {
		n := rand.IntN(largest + 1000)
		class, size := classOf(n)
		if n < smallest || n > largest {
			if class != -1 {
				t.Fatalf("%d bytes are pooled", n)
			}
			continue
		}
		if size < n || size*4 > n*5+4 {
			t.Fatalf("%d bytes get %d", n, size)
		}
		if again, same := classOf(size); again != class || same != size {
			t.Fatalf("a buffer of %d bytes does not go back to where it came from", size)
		}
		if class < 0 || class >= len((&Pool{}).classes) {
			t.Fatalf("%d bytes are of class %d", n, class)
		}
	}
}

func TestReleasedMemoryIsUsedAgain(t *testing.T) {
	r := &Reader{Max: 1 << 20, Pool: &Pool{}}
	content := bytes.Repeat([]byte("x"), 600<<10)
	read := func() {
		b, err := r.Read(bytes.NewReader(content), int64(len(content)), "", Guard{})
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	read()
	if perRun := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read()
		}
	}).AllocedBytesPerOp(); perRun > 450<<10 { // under the race detector, pools forget at random
		t.Errorf("reading 600 KiB again and again takes %d bytes each time", perRun)
	}
}
