// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overhead

import (
	"io"
	"net/http"
)

// countedBody is the body of a request over HTTP/2, which is no overhead of its connection.
type countedBody struct {
	io.ReadCloser
	meter *Meter
}

// Read reads the body.
func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.meter.Less(int64(n))
	}
	return n, err
}

// BeginRequest notes that a request begins, as Begin does, and makes its body no overhead as it is read.
func (m *Meter) BeginRequest(r *http.Request) {
	m.Begin(r.ProtoMajor)
	if r.ProtoMajor >= 2 && r.Body != http.NoBody {
		r.Body = countedBody{r.Body, m}
	}
}
