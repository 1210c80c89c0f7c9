// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/hookgate/hookgate/catalog"
)

// muxError writes what a service, or the decoding of its request, returned.
func (f *REST) muxError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	h, _, _ := f.catalog.ByPath(r.URL.Path)
	f.writeError(w, h, inboundFrom(ctx), err)
}

// routingError writes that no service has the path: the front checked it, so that only a path with escapes comes here.
func (f *REST) routingError(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, _ int) {
	h, _, _ := f.catalog.ByPath(r.URL.Path)
	f.writeError(w, h, inboundFrom(ctx), f.unknownPath(r.URL.Path, h))
}

func (f *REST) writeError(w http.ResponseWriter, h *catalog.Hook, in *inbound, err error) {
	in.fail(err)
	f.writeStatus(w, h, httpStatus(in.err.Kind), in)
}

// writeStatus writes the call's error as an answer of the hook: apiVersion, kind, status Failure and message. Where the
// hook is not known, there is no kind.
func (f *REST) writeStatus(w http.ResponseWriter, h *catalog.Hook, code int, in *inbound) {
	var body []byte
	var err error
	if h != nil {
		body, err = f.codec.Append(nil, newFailure(h, in.err.Error()))
	} else {
		body, err = json.Marshal(struct {
			APIVersion string `json:"apiVersion"`
			Status     string `json:"status"`
			Message    string `json:"message"`
		}{f.apiVersion(), "Failure", in.err.Error()})
	}
	if err != nil {
		code, body = http.StatusInternalServerError, nil
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set(ErrorKindHeader, in.err.Kind.String())
	w.WriteHeader(code)
	n, _ := w.Write(body) // a caller that left is seen by the server
	in.sent += int64(n)
}
