// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"io"
	"net/http"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/body"
)

// MaxBodyBytes is the most that a request or an answer may have, decompressed too, on every transport: 20 MiB, the limit
// of Cluster API's own server.
const MaxBodyBytes = 20 << 20

// readBody reads the request's body, decompressed. Errors are TooLarge, InvalidRequest and Canceled.
func (f *REST) readBody(w http.ResponseWriter, r *http.Request) (*body.Body, error) {
	b, err := f.bodies.Read(r.Body, r.ContentLength, r.Header.Get("Content-Encoding"))
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, body.ErrTooLarge):
		// Whatever else the caller sends would have to be read to keep the connection.
		w.Header().Set("Connection", "close")
		err = hook.Errorf(hook.TooLarge, "request body is larger than 20 MiB")
	case errors.Is(err, body.ErrEncoding):
		err = hook.Errorf(hook.InvalidRequest, "%s: send gzip, or none", err)
	case r.Context().Err() != nil:
		err = hook.Errorf(hook.Canceled, "the caller left while sending the request").WithCause(err)
	case errors.Is(err, body.ErrGzip):
		err = hook.Errorf(hook.InvalidRequest, "request body is not valid gzip").WithCause(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = hook.Errorf(hook.InvalidRequest, "request body ends early").WithCause(err)
	default:
		err = hook.Errorf(hook.InvalidRequest, "request body cannot be read").WithCause(err)
	}
	return b, err
}
