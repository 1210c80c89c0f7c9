// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package answercache

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// memory is memory of which some is left.
type memory struct {
	left     int64
	releases int
}

func (m *memory) reserve(n int64) (func(), bool) {
	if n > m.left {
		return nil, false
	}
	m.left -= n
	return func() { m.left += n; m.releases++ }, true
}

// put keeps an answer that takes so many bytes.
func put(t *testing.T, c *Cache, m *memory, name string, size int64) {
	t.Helper()
	_, f, own := c.Begin(keyOf(name))
	if !own {
		t.Fatalf("%s is there already", name)
	}
	c.End(f, &Answer{Text: bytes.Repeat([]byte{1}, int(size-entryBytes))}, nil, time.Minute, m.reserve)
}

// has reports whether an answer is kept.
func has(c *Cache, name string) bool {
	a, f, own := c.Begin(keyOf(name))
	if own {
		c.End(f, nil, nil, 0, nil)
	}
	return a != nil
}

func keyOf(name string) Key {
	d := NewDigest()
	d.Text(name)
	return d.Key()
}

func TestLimit(t *testing.T) {
	c, m := New(16*entryBytes), &memory{left: 1 << 30}
	for _, name := range []string{"a", "b", "c", "d"} {
		put(t, c, m, name, 4*entryBytes)
	}
	if !has(c, "a") || c.Bytes() != 16*entryBytes {
		t.Fatalf("%d bytes are kept, want all of them", c.Bytes())
	}
	put(t, c, m, "e", entryBytes)
	if has(c, "b") || !has(c, "a") || !has(c, "e") {
		t.Error("the answer that was used least recently is kept, or another one is gone")
	}
	if want := int64(1<<30 - 13*entryBytes); m.left != want || m.releases != 1 {
		t.Errorf("%d bytes are left, and %d were given back, want %d and 1", m.left, m.releases, want)
	}
	put(t, c, m, "large", 4*entryBytes+1)
	if has(c, "large") || !has(c, "a") {
		t.Error("an answer of more than a quarter of all memory is kept, or has taken the place of others")
	}
}

func TestNoMemoryToSpare(t *testing.T) {
	c, m := New(1<<20), &memory{left: 2 * entryBytes}
	put(t, c, m, "a", entryBytes)
	put(t, c, m, "b", entryBytes)
	put(t, c, m, "c", 2*entryBytes)
	if has(c, "a") || has(c, "b") || !has(c, "c") {
		t.Error("the last answer has not taken the place of the others")
	}
	m.left = -2 * entryBytes // calls need it
	put(t, c, m, "d", entryBytes)
	if has(c, "c") || has(c, "d") || c.Bytes() != 0 {
		t.Errorf("%d bytes are kept, want none while there is no memory to spare", c.Bytes())
	}
}

func TestAnswersExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := New(1<<20), &memory{left: 1 << 20}
		put(t, c, m, "a", entryBytes)
		time.Sleep(time.Minute - time.Nanosecond)
		if !has(c, "a") {
			t.Error("the answer is gone before its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if c.Bytes() != 0 || m.left != 1<<20 || has(c, "a") {
			t.Errorf("%d bytes are kept after their time", c.Bytes())
		}
	})
}

func TestWaitersGetTheOutcome(t *testing.T) {
	c := New(1 << 20)
	_, first, own := c.Begin(keyOf("a"))
	_, second, again := c.Begin(keyOf("a"))
	if !own || again || first != second {
		t.Fatal("two calls with one key are in flight")
	}
	if _, _, own := c.Begin(keyOf("b")); !own {
		t.Fatal("a call waits for one with another key")
	}
	select {
	case <-second.Done():
		t.Fatal("the call has ended")
	default:
	}
	want := &Answer{Text: []byte("x")}
	c.End(first, want, nil, 0, nil)
	<-second.Done()
	if got, err := second.Outcome(); got != want || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if kept, _, own := c.Begin(keyOf("a")); kept != nil || !own {
		t.Error("an answer without a time to live is kept, or a call waits for one that has ended")
	}
}
