// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// readBy returns when a caller must have read so much of an answer, which began to be written at began.
func readBy(began time.Time, bytes int64) time.Time {
	return began.Add(limits.AnswerPatience + time.Duration(bytes)*time.Second/limits.AnswerBytesPerSecond)
}

// AnswerWriter writes an answer over HTTP, and gives up if its caller reads it too slowly: over HTTP/1.1 with the
// connection, over HTTP/2 with the stream. It belongs to one goroutine.
type AnswerWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
	http2   bool
	last    time.Time // for all of it
	began   time.Time // zero before the first byte
	written int64
}

// NewAnswerWriter returns a writer of the answer to r, which has just come.
func NewAnswerWriter(to http.ResponseWriter, r *http.Request) AnswerWriter {
	return AnswerWriter{
		to: to, control: http.NewResponseController(to), http2: r.ProtoMajor >= 2, last: time.Now().Add(writeTimeout),
	}
}

// answerPiece is how much of an answer has one deadline, in bytes.
const answerPiece = 256 << 10

// Write writes p.
func (w *AnswerWriter) Write(p []byte) (int, error) {
	if w.began.IsZero() {
		w.began = time.Now()
	}
	total := 0
	for {
		piece := p[total:min(total+answerPiece, len(p))]
		by := readBy(w.began, w.written+int64(len(piece)))
		if by.After(w.last) {
			by = w.last
		}
		_ = w.control.SetWriteDeadline(by) // all but writers of tests have deadlines
		n, err := w.to.Write(piece)
		total += n
		w.written += int64(n)
		if err != nil || total == len(p) {
			return total, err
		}
	}
}

// Flush returns once a small answer over HTTP/2 is on its way, too: its caller may have opened no window for it. It is
// kept until the handler has returned otherwise, when nothing counts the call any more, and one connection may have a
// hundred.
func (w *AnswerWriter) Flush() {
	if w.http2 && w.written > 0 {
		_ = w.control.Flush() // the caller has left
	}
}

// unread is an answer over gRPC that its caller has not read yet. gRPC keeps it after its handler has returned.
type unread struct {
	of      *conn
	began   time.Time
	size    int64
	release func()
	timer   *time.Timer

	mu      sync.Mutex
	written int64
	ended   bool
}

// HoldAnswer calls release when the answer of that size to the stream with ctx has been written, of which written is
// told, or when its connection has closed. It closes the connection if the caller reads the answer too slowly: gRPC has
// no other way to end a stream whose handler has returned.
func HoldAnswer(ctx context.Context, size int64, release func()) (written func(bytes int)) {
	c := streamConn(ctx)
	if c == nil {
		release()
		return func(int) {}
	}
	u := &unread{of: c, began: time.Now(), size: size, release: release}
	c.answers.add(u)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.ended {
		u.timer = time.AfterFunc(limits.AnswerPatience, u.look)
	}
	return u.wrote
}

// wrote notes that so many bytes have been written, or will not be.
func (u *unread) wrote(bytes int) {
	u.mu.Lock()
	u.written += int64(bytes)
	whole := u.written >= u.size
	u.mu.Unlock()
	if whole {
		u.end()
	}
}

// look closes the connection if the answer is read too slowly.
func (u *unread) look() {
	u.mu.Lock()
	left := time.Until(readBy(u.began, u.written))
	if left > 0 && !u.ended {
		u.timer.Reset(left)
	}
	late := left <= 0 && !u.ended
	u.mu.Unlock()
	if late {
		u.of.of.cut(u.of, "callers do not read their answers")
		u.end()
	}
}

// end releases the memory of the answer, once.
func (u *unread) end() {
	u.mu.Lock()
	ended := u.ended
	u.ended = true
	if u.timer != nil {
		u.timer.Stop()
	}
	u.mu.Unlock()
	if ended {
		return
	}
	u.of.answers.remove(u)
	u.release()
}

// unreadAnswers are those of a connection. Its zero value has none.
type unreadAnswers struct {
	mu     sync.Mutex
	all    map[*unread]struct{}
	closed bool
}

// add adds an answer, which ends at once if the connection has closed.
func (a *unreadAnswers) add(u *unread) {
	a.mu.Lock()
	closed := a.closed
	if !closed {
		if a.all == nil {
			a.all = map[*unread]struct{}{}
		}
		a.all[u] = struct{}{}
	}
	a.mu.Unlock()
	if closed {
		u.end()
	}
}

func (a *unreadAnswers) remove(u *unread) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, u)
}

// close ends all of them: the connection has closed.
func (a *unreadAnswers) close() {
	a.mu.Lock()
	all := a.all
	a.all, a.closed = nil, true
	a.mu.Unlock()
	for u := range all {
		u.end()
	}
}
