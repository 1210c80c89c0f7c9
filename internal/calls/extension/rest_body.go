// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/hookgate/hookgate/internal/contract/codec"
)

// smallBody is the size up to which a body is copied before it is sent. net/http writes the header of a request by
// itself, with one more system call, unless it knows that the body is in memory, and for small bodies that is what
// counts.
const smallBody = 16 << 10

var errDetached = errors.New("the call has ended")

// restBody is the body of a request. net/http may still read it when the attempt has ended, and the message that it
// aliases belongs to the caller again by then.
type restBody struct {
	body codec.Body
	copy []byte // of a small body

	mu       sync.Mutex // held while the message is read
	detached bool
	read     int64
}

func newRESTBody(body codec.Body) *restBody {
	o := &restBody{body: body}
	if body.Size() <= smallBody {
		o.copy = body.Bytes()
	}
	return o
}

// reader returns the body from its beginning.
func (o *restBody) reader() io.ReadCloser {
	if o.copy != nil {
		return io.NopCloser(bytes.NewReader(o.copy))
	}
	return &restBodyReader{o: o, r: o.body.Reader()}
}

// again implements http.Request.GetBody.
func (o *restBody) again() (io.ReadCloser, error) {
	o.mu.Lock()
	o.read = 0
	o.mu.Unlock()
	return o.reader(), nil
}

// detach ends all reading of the message, and returns the number of bytes that were sent.
func (o *restBody) detach(wrote bool) int64 {
	if wrote {
		return o.body.Size()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.detached = true
	return o.read
}

type restBodyReader struct {
	o *restBody
	r *codec.BodyReader
}

func (r *restBodyReader) Read(p []byte) (int, error) {
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

func (r *restBodyReader) Close() error { return nil }
