// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package body

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// turn records what a reader does with its work.
type turn struct {
	has, paused  bool
	steps, fails int   // Step fails when it is called for the fails'th time
	err          error // of that
}

func (w *turn) Step() error {
	w.has = true
	if w.steps++; w.steps == w.fails {
		w.has = false
		return w.err
	}
	return nil
}

func (w *turn) Pause() { w.paused, w.has = w.has, false }

func (w *turn) Resume() error {
	if w.paused {
		w.paused, w.has = false, true
	}
	return nil
}

func (w *turn) End() { w.has = false }

// network fails the test if it is read while its reader has a turn.
type network struct {
	io.Reader
	t *testing.T
	w *turn
}

func (n network) Read(p []byte) (int, error) {
	if n.w.has {
		n.t.Error("the turn is held while waiting for the source")
	}
	return n.Reader.Read(p)
}

func TestHeavyBodiesTakeTurns(t *testing.T) {
	random := make([]byte, 2<<20) // compresses badly, so that much of it is read while it is inflated
	for i, x := 0, uint32(1); i < len(random); i++ {
		x = x*1664525 + 1013904223
		random[i] = byte(x >> 24)
	}
	for name, tc := range map[string]struct {
		content     []byte
		zipped      bool
		length      bool
		least, most int // steps
	}{
		"Small":          {content: random[:step], length: true},
		"SmallUnknown":   {content: random[:step-1]},
		"SmallGzip":      {content: random[:step-1], zipped: true},
		"LargeOfLength":  {content: random, length: true, least: 1, most: 1}, // the one large buffer
		"LargeUnknown":   {content: random, least: 2, most: 4},               // from 512 KiB on
		"LargeGzip":      {content: random, zipped: true, least: 8, most: 12},
		"CompressesWell": {content: make([]byte, 2<<20), zipped: true, least: 8, most: 12},
	} {
		t.Run(name, func(t *testing.T) {
			sent, encoding, length := tc.content, "", int64(-1)
			if tc.zipped {
				sent, encoding = zip(t, sent), "gzip"
			}
			if tc.length {
				length = int64(len(sent))
			}
			w := &turn{}
			reserve := func(int64) error {
				if w.has {
					t.Error("the turn is held while waiting for memory")
				}
				return nil
			}
			b, err := (&Reader{Max: 4 << 20}).Read(network{bytes.NewReader(sent), t, w}, length, encoding, Guard{Reserve: reserve, Work: w})
			if err != nil || !bytes.Equal(b.Bytes, tc.content) {
				t.Fatalf("got %d bytes, %v", len(b.Bytes), err)
			}
			if w.steps < tc.least || w.steps > tc.most {
				t.Errorf("%d steps, want %d to %d", w.steps, tc.least, tc.most)
			}
			if w.has {
				t.Error("the turn is not given back")
			}
		})
	}
}

// The error of any step ends the reading, and is not taken for one of the compression.
func TestStepsThatFail(t *testing.T) {
	content := make([]byte, 2<<20)
	late := errors.New("too late")
	for encoding, sent := range map[string][]byte{"": content, "gzip": zip(t, content)} {
		for fails := 1; fails <= 3; fails++ {
			w := &turn{fails: fails, err: late}
			b, err := (&Reader{Max: 4 << 20, Pool: &Pool{}}).Read(network{bytes.NewReader(sent), t, w}, -1, encoding, Guard{Work: w})
			if !errors.Is(err, late) || errors.Is(err, ErrGzip) || b.Bytes != nil || w.has || w.steps != fails {
				t.Errorf("%q: got %d bytes, %v after %d steps, has the turn: %t", encoding, len(b.Bytes), err, w.steps, w.has)
			}
		}
	}
}
