// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// LingeringClose lets an answer that comes before the end of its request reach callers that read nothing until they
// have sent everything, as most HTTP clients do: closing the connection under them would show them a broken connection
// instead of the answer. net/http does the same, but for no more than 256 KiB; nginx calls it a lingering close. The
// zero value has the bounds of package limits.
type LingeringClose struct {
	Bytes   int64
	Timeout time.Duration
}

// readByServer is the size of bodies up to which net/http itself reads them to their end, in HTTP/1.
const readByServer = 256 << 10

const (
	// lingerQuiet is how long a caller may send nothing until it counts as one that has seen the answer. Go's client
	// stops sending over HTTP/2 when it has, and waits for the end of the stream.
	lingerQuiet = limits.LingerQuiet
	// lingerBuffer is the size of the reads after an answer.
	lingerBuffer = 32 << 10
)

// SentBody is the body of a request while it is read. It is not safe for concurrent use.
type SentBody struct {
	io.Reader
	begun, ended bool
	whole        bool // it has ended with its last byte
}

// Read reads the body, and notes its end.
func (b *SentBody) Read(p []byte) (int, error) {
	b.begun = true
	n, err := b.Reader.Read(p)
	if err != nil {
		b.ended = true // or broken: either way, there is nothing more to read
		b.whole = errors.Is(err, io.EOF)
	}
	return n, err
}

// Prepare lets the body of r be read after the answer has begun. It must be called before that.
func (l LingeringClose) Prepare(w http.ResponseWriter, r *http.Request) {
	if l.applies(r) {
		_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/1 supports it, and HTTP/2 needs no permission
	}
}

// applies reports whether r may have more than net/http reads by itself. In HTTP/2, net/http resets the stream of such
// a request after the answer. Some clients, such as Java's, then lose the answer or wait without end.
func (LingeringClose) applies(r *http.Request) bool {
	return r.ContentLength < 0 || r.ContentLength > readByServer || r.ProtoMajor == 2 && r.ContentLength > 0
}

// Discard sends what has been written and then reads the rest of the request, within bounds. It is called at the end of
// the call, with the body as far as it was read, or nil. Over HTTP/1, a request that was not read to its end is the
// last one of its connection: net/http would take what is still to come for the next one if its own reads had failed,
// too.
func (l LingeringClose) Discard(w http.ResponseWriter, r *http.Request, body *SentBody) {
	if !l.applies(r) || l.readsToEnd(w, r, body) || r.ProtoMajor != 1 {
		return
	}
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.endAfterAnswer()
	}
}

// readsToEnd is Discard, and reports whether the request has ended.
func (l LingeringClose) readsToEnd(w http.ResponseWriter, r *http.Request, body *SentBody) bool {
	switch {
	case body != nil && body.ended:
		return body.whole
	case (body == nil || !body.begun) && r.Header.Get("Expect") != "":
		return false // the caller waits for the answer, and sends nothing after it
	}
	c := http.NewResponseController(w)
	if c.Flush() != nil {
		return false
	}
	buffer := make([]byte, lingerBuffer)
	end := time.Now().Add(cmp.Or(l.Timeout, limits.LingerTimeout))
	for left := cmp.Or(l.Bytes, limits.LingerBytes); left > 0; {
		deadline := time.Now().Add(lingerQuiet)
		if deadline.After(end) {
			deadline = end
		}
		if c.SetReadDeadline(deadline) != nil {
			return false
		}
		n, err := r.Body.Read(buffer)
		if err != nil { // there is no more to read, or the caller has stopped sending
			return errors.Is(err, io.EOF)
		}
		left -= int64(n)
	}
	return false
}
