// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"

	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/network/via"
)

// ErrorKindHeader carries the kind of the error in answers other than 200.
const ErrorKindHeader = via.ErrorKindHeader

// muxError writes the error of a service. The mux itself has none: the front has checked the path.
func (f *REST) muxError(
	ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error,
) {
	f.writeError(w, callFrom(ctx), err)
}

func (f *REST) writeError(w http.ResponseWriter, in *call, err error) {
	in.fail(err)
	f.writeStatus(w, in, in.Err.HTTPStatus())
}

// writeStatus writes the call's error as a response of the hook: apiVersion, kind, status Failure and message. If the
// hook is unknown, kind is omitted.
func (f *REST) writeStatus(w http.ResponseWriter, in *call, code int) {
	var body []byte
	var err error
	if in.Hook != nil {
		body, err = f.config.Codec.Append(nil, outcome.Failure(in.Hook, in.Err.Error()))
	} else {
		body, err = json.Marshal(struct {
			APIVersion string `json:"apiVersion"`
			Status     string `json:"status"`
			Message    string `json:"message"`
		}{f.apiVersion(), "Failure", in.Err.Error()})
	}
	if err != nil {
		code, body = http.StatusInternalServerError, nil
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set(ErrorKindHeader, in.Err.Kind.String())
	if after := in.Err.RetryAfter; after > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)) // at least 1
	}
	if code == http.StatusUnauthorized && f.config.Gate != nil {
		header.Set("WWW-Authenticate", f.config.Gate.Challenge())
	}
	w.WriteHeader(code)
	_, _ = w.Write(body) // the server sees a caller that left
}
