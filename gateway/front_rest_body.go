// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/body"
	"github.com/hookgate/hookgate/internal/limits"
)

// MaxBodyBytes is the size of the largest request or answer on every transport, after decompression.
const MaxBodyBytes = limits.BodyBytes

// readBody reads and decompresses the request's body. Errors are of kind TooLarge, Overloaded, InvalidRequest and
// Canceled.
func (f *REST) readBody(
	w http.ResponseWriter, r *http.Request, sent io.Reader, g body.Guard,
) (*body.Body, error) {
	// Several headers are one list.
	encoding := strings.Join(r.Header.Values("Content-Encoding"), ", ")
	b, err := f.bodies.Read(sent, r.ContentLength, encoding, g)
	var refused *hook.Error
	switch {
	case err == nil:
		return b, nil
	case errors.As(err, &refused):
		w.Header().Set("Connection", "close")
		err = refused
	case errors.Is(err, context.DeadlineExceeded): // while waiting for a turn
		w.Header().Set("Connection", "close")
		err = beyond(err)
	case errors.Is(err, body.ErrTooLarge):
		// The caller may have more to send than is read after the answer. In HTTP/2, that concerns the stream alone.
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		err = hook.Errorf(hook.TooLarge, "request body is larger than 20 MiB")
	case errors.Is(err, body.ErrEncoding):
		err = hook.Errorf(hook.InvalidRequest, "%s: send gzip, or none", err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = hook.Errorf(hook.InvalidRequest, "request body was not received within %s", limits.ReceiveTimeout).
			WithCause(err)
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
