// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/tunnel"
)

// callError is an error that a server answered with.
type callError struct {
	status  string // "HTTP 502 Bad Gateway" or "gRPC Unavailable"
	kind    string // the gateway's kind of error; empty if the server is no gateway
	message string
	callID  string
	hint    string
	absent  bool // the server does not have the hook
}

func (e *callError) Error() string {
	var b strings.Builder
	b.WriteString(e.status)
	if e.kind != "" {
		b.WriteString(", error kind " + e.kind)
	}
	b.WriteString(": " + text.Printable(e.message))
	if e.callID != "" {
		b.WriteString(" (call id " + text.Printable(e.callID) + ")")
	}
	return withHint(b.String(), e.hint)
}

func withHint(what, hint string) string {
	if hint == "" {
		return what
	}
	return what + "\n" + hint
}

// explain returns the error of a failed call, with a hint.
func (s *server) explain(f *connect.Failure) error {
	if failed, ok := errors.AsType[*tunnel.Error](f); ok {
		return failed
	}
	what := f.Text
	if f.Kind == hook.Timeout {
		what = "no answer within " + s.options.timeout.String()
	}
	words := client.Options{URL: "--server ", CA: "--ca FILE", Certificate: "--cert FILE and --key FILE"}
	if s.options.ca != "" {
		words.CA += ", which is not " + s.options.ca
	}
	return errors.New(withHint("server "+s.name()+": "+what, words.Hint(s.endpoint, f)))
}

// refusal returns the error of an answer with a status that is not OK. A gateway's has a kind and the hook's message;
// other servers' have whatever they have.
func (s *server) refusal(r *client.Response, handler string) *callError {
	e := &callError{
		status: r.Status, kind: r.Header.Get(gateway.ErrorKindHeader), callID: r.Header.Get(gateway.CallIDHeader),
	}
	if r.GRPC != nil {
		e.message = r.GRPC.Message()
		for _, detail := range r.GRPC.Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok {
				e.kind = info.GetReason()
			}
		}
		e.absent = r.GRPC.Code() == codes.Unimplemented
		if e.kind == "" && e.absent {
			e.hint = "The server does not serve this hook."
		}
		return e
	}
	e.absent = r.HTTPCode == http.StatusNotFound
	var body struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(r.Body, &body) == nil && body.Message != "":
		e.message = body.Message
	case r.IsGRPC():
		e.message = "this is a server of gRPC"
		e.hint = "Call it with --server grpcs://" + s.endpoint.Authority + "."
	case len(bytes.TrimSpace(r.Body)) == 0:
		e.message = "the answer has no body"
	default:
		e.message = "the body is " + excerptOf(r.Body)
	}
	switch {
	case e.kind != "" || e.hint != "":
	case r.HTTPCode == http.StatusNotFound && handler == "":
		e.hint = "The answer is not a gateway's. If this is an extension, it wants --handler: see " +
			"\"hookgate get handlers\"."
	default:
		e.hint = "The answer is not a gateway's. Is --server right?"
	}
	return e
}

// excerptOf returns the beginning of a body for a message, on one line.
func excerptOf(data []byte) string {
	const most = 200
	return text.Cut(strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "?")), " "), most)
}
