// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answercache keeps answers of extensions for a while, and lets identical calls that are in flight at the same
// time share one answer. What is kept is bounded in bytes; the answers that were used least recently go first.
package answercache

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/utils/lru"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Key identifies a request to a handler by its content.
type Key [sha256.Size]byte

// Answer is an answer in the form in which it is kept. It must not be changed.
type Answer struct {
	// Text is the encoded answer.
	Text []byte
	// Lost holds the paths of the members that conversions could not express.
	Lost []string
}

// entryBytes is what an answer takes besides its text and its paths, generously.
const entryBytes = 1 << 10

// bytes returns the memory that an answer takes.
func (a *Answer) bytes() int64 {
	n := int64(entryBytes + len(a.Text))
	for _, path := range a.Lost {
		n += int64(len(path))
	}
	return n
}

// Reserve reserves memory for an answer that is kept, and reports whether there was some to spare. The memory is given
// back by the function that it returns.
type Reserve func(bytes int64) (release func(), ok bool)

// Cache holds answers. It is safe for concurrent use.
type Cache struct {
	limit int64

	mu      sync.Mutex
	used    int64
	kept    *lru.Cache // of *entry, by Key
	flights map[Key]*Flight
}

// entry is an answer that is kept.
type entry struct {
	answer  *Answer
	bytes   int64
	release func()
	expiry  *time.Timer
}

// New returns an empty Cache for so many bytes.
func New(limit int64) *Cache {
	c := &Cache{limit: limit, flights: map[Key]*Flight{}}
	c.kept = lru.NewWithEvictionFunc(0, c.dropped) // without a limit of its own
	return c
}

// Flight is a call in flight, which others may wait for.
type Flight struct {
	key    Key
	done   chan struct{}
	answer *Answer
	err    error
}

// Done is closed when the call has ended.
func (f *Flight) Done() <-chan struct{} { return f.done }

// Outcome returns what came of a call that has ended: its answer or its error, or neither if others cannot use it and
// have to call for themselves.
func (f *Flight) Outcome() (*Answer, error) { return f.answer, f.err }

// Begin returns the answer for a key if it is kept. Otherwise it returns a call in flight, and reports whether it is
// the caller's own, which has to end it with End.
func (c *Cache) Begin(k Key) (kept *Answer, f *Flight, own bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.kept.Get(k); ok {
		return e.(*entry).answer, nil, false
	}
	if f, ok := c.flights[k]; ok {
		return nil, f, false
	}
	f = &Flight{key: k, done: make(chan struct{})}
	c.flights[k] = f
	return nil, f, true
}

// End ends a call with an outcome for those that wait for it. An answer is kept for the time ttl, unless that is 0 or
// there is no memory to spare.
func (c *Cache) End(f *Flight, a *Answer, err error, ttl time.Duration, reserve Reserve) {
	f.answer, f.err = a, err
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, f.key)
	close(f.done)
	if a != nil && ttl > 0 {
		c.keep(f.key, a, ttl, reserve)
	}
}

// keep keeps an answer, in the place of others if there is not enough room.
func (c *Cache) keep(k Key, a *Answer, ttl time.Duration, reserve Reserve) {
	e := &entry{answer: a, bytes: a.bytes()}
	if e.bytes > c.limit/limits.CachedPart {
		return // one answer does not take the place of all
	}
	for c.used+e.bytes > c.limit {
		c.kept.RemoveOldest()
	}
	release, ok := reserve(e.bytes)
	for ; !ok && c.kept.Len() > 0; release, ok = reserve(e.bytes) {
		c.kept.RemoveOldest()
	}
	if !ok {
		return
	}
	e.release = release
	e.expiry = time.AfterFunc(ttl, func() { c.expire(k, e) })
	c.used += e.bytes
	c.kept.Add(k, e)
}

// expire removes an answer whose time is over.
func (c *Cache) expire(k Key, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, ok := c.kept.Get(k); ok && now.(*entry) == e {
		c.kept.Remove(k)
	}
}

// dropped gives back the memory of an answer that has been removed, with the lock held.
func (c *Cache) dropped(_ lru.Key, value any) {
	e := value.(*entry)
	e.expiry.Stop()
	e.release()
	c.used -= e.bytes
}

// Bytes returns the memory that the kept answers take.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}
