// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logs writes the log without waiting for what reads it. A pipe whose reader has stopped blocks every write to
// it; without this package, that would be every call that logs something, and the gateway would stand still.
//
// All types are safe for concurrent use.
package logs

import (
	"io"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// flushTime bounds how long Close waits for what is left.
	flushTime = time.Second
	// keptBytes is the size up to which a buffer is kept for the next lines.
	keptBytes = 64 << 10
)

// Writer passes lines on to another writer, in their order, from a goroutine of its own. While that writer blocks,
// lines are kept up to limits.LogBytes, and then dropped. Use New.
type Writer struct {
	to io.Writer
	// dropped is called after lines were dropped, with their number, once there is room again.
	dropped func(lines int)

	mu      sync.Mutex
	pending []byte
	lost    int
	closed  bool
	wake    chan struct{}
	ended   chan struct{}
}

// New returns a Writer to another writer. The caller must close it.
func New(to io.Writer) *Writer {
	w := &Writer{to: to, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go w.run()
	return w
}

// OnDropped sets a function that is called after lines were dropped, with their number, once there is room for more. It
// may write to w.
func (w *Writer) OnDropped(dropped func(lines int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dropped = dropped
}

// Write keeps a line, or drops it if there is no room. It never blocks and returns no error.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending)+len(line) > limits.LogBytes {
		w.lost++
		return len(line), nil
	}
	w.pending = append(w.pending, line...)
	w.notify()
	return len(line), nil
}

// Close writes what is left, and waits at most a second for that. What is written afterwards is lost.
func (w *Writer) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		w.notify()
	}
	w.mu.Unlock()
	select {
	case <-w.ended:
	case <-time.After(flushTime):
	}
	return nil
}

// notify makes run look again. The lock is held.
func (w *Writer) notify() {
	select {
	case w.wake <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// run writes until the Writer is closed and nothing is left.
func (w *Writer) run() {
	defer close(w.ended)
	var free []byte
	for range w.wake {
		for {
			w.mu.Lock()
			lines, lost, dropped, closed := w.pending, w.lost, w.dropped, w.closed
			w.pending, w.lost = free, 0
			w.mu.Unlock()
			if len(lines) == 0 && closed {
				return
			}
			free = nil
			if cap(lines) <= keptBytes {
				free = lines[:0]
			}
			if len(lines) == 0 {
				break
			}
			_, _ = w.to.Write(lines) // of an error, no log can tell
			if lost > 0 && dropped != nil {
				dropped(lost)
			}
		}
	}
}
