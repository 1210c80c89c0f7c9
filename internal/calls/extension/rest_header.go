// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync"

	"golang.org/x/net/http/httpguts"

	"github.com/hookgate/hookgate/internal/network/via"
)

// requests holds buffers for the header of a request, and for a small body after it.
var requests = sync.Pool{New: func() any { return new([]byte) }}

// appendHeader appends the header of a request with a body of size bytes, as HTTP/1.1 has it.
func (r *REST) appendHeader(ctx context.Context, text []byte, x *restRequest, size int64) ([]byte, error) {
	path := url.URL{Path: x.route.prefix + x.hook.Path(x.handler)}
	text = append(append(text, "POST "...), path.EscapedPath()...)
	text = append(append(text, '?'), x.query...)
	text = append(append(text, " HTTP/1.1\r\nHost: "...), x.route.authority...)
	text = append(text, "\r\nUser-Agent: hookgate\r\nContent-Length: "...)
	text = strconv.AppendInt(text, size, 10)
	text = append(text, "\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n"+
		"Content-Type: application/json\r\n"...)
	h := headerLines{text: text}
	if r.config.Propagator != nil {
		r.config.Propagator.Inject(ctx, &h)
	}
	if x.via != "" {
		h.Set(via.Header, string(x.via))
	}
	return append(h.text, "\r\n"...), h.err
}

// headerLines is a propagation.TextMapCarrier that appends what is set to the header of a request.
type headerLines struct {
	text []byte
	err  error // of the last line that cannot be one
}

// Set appends a line.
func (h *headerLines) Set(name, value string) {
	if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
		h.err = fmt.Errorf("invalid header %q", name)
		return
	}
	h.text = append(append(append(append(h.text, name...), ": "...), value...), "\r\n"...)
}

// Get returns nothing: a carrier of what is sent is not read.
func (h *headerLines) Get(string) string { return "" }

// Keys returns nothing, as Get does.
func (h *headerLines) Keys() []string { return nil }
