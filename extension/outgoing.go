// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/hookgate/hookgate/codec"
)

// smallBody is up to which size a body is copied before it is sent. net/http writes the header of a request by itself,
// a system call more, unless the body is one that it knows to be in memory; for small bodies that is what counts.
const smallBody = 16 << 10

var errDetached = errors.New("the call has ended")

// outgoing is the body of a request. net/http may still read it when the attempt has ended, and the message that it
// aliases is not ours by then.
type outgoing struct {
	body codec.Body
	copy []byte // of a small body

	mu       sync.Mutex // held while the message is read
	detached bool
	read     int64
}

func newOutgoing(body codec.Body) *outgoing {
	o := &outgoing{body: body}
	if body.Size() <= smallBody {
		o.copy = body.Bytes()
	}
	return o
}

// reader returns the body from its beginning.
func (o *outgoing) reader() io.ReadCloser {
	if o.copy != nil {
		return io.NopCloser(bytes.NewReader(o.copy))
	}
	return &outgoingReader{o: o, r: o.body.Reader()}
}

// again is http.Request.GetBody.
func (o *outgoing) again() (io.ReadCloser, error) {
	o.mu.Lock()
	o.read = 0
	o.mu.Unlock()
	return o.reader(), nil
}

// detach ends all reading of the message, and returns how much of it was sent.
func (o *outgoing) detach(wrote bool) int64 {
	if wrote {
		return o.body.Size()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.detached = true
	return o.read
}

type outgoingReader struct {
	o *outgoing
	r io.Reader
}

func (r *outgoingReader) Read(p []byte) (int, error) {
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	if r.o.detached {
		if r.o.read == r.o.body.Size() {
			return 0, io.EOF // net/http asks for more even when all was sent, and closes the connection after an error
		}
		return 0, errDetached
	}
	n, err := r.r.Read(p)
	r.o.read += int64(n)
	return n, err
}

func (r *outgoingReader) Close() error { return nil }
