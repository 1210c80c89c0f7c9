// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"bytes"
	"cmp"
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

// CallError is an error that a server answered with.
type CallError struct {
	status  string // "HTTP 502 Bad Gateway" or "gRPC Unavailable"; empty for an answer that cannot be read
	Kind    string // the gateway's kind of error; empty if the server is no gateway
	Message string
	callID  string
	Hint    string
	absent  bool // the server does not have the hook
}

func (e *CallError) Error() string {
	var b strings.Builder
	if e.status != "" {
		b.WriteString(e.status)
		if e.Kind != "" {
			b.WriteString(", error kind " + e.Kind)
		}
		b.WriteString(": ")
	}
	b.WriteString(text.Printable(e.Message))
	if e.callID != "" {
		b.WriteString(" (call id " + text.Printable(e.callID) + ")")
	}
	return WithHint(b.String(), e.Hint)
}

// WithHint returns what happened, with the hint, if there is one, on a line of its own.
func WithHint(what, hint string) string {
	if hint == "" {
		return what
	}
	return what + "\n" + hint
}

// Explain returns the error of a failed call, with a hint.
func (s *Server) Explain(f *connect.Failure) error {
	if failed, ok := errors.AsType[*tunnel.Error](f); ok {
		return failed
	}
	what := f.Text
	if f.Kind == hook.Timeout {
		what = "no answer within " + s.options.Timeout.String()
	}
	words := client.Options{URL: "--server ", CA: "--ca FILE", Certificate: "--cert FILE and --key FILE"}
	if s.options.CA != "" {
		words.CA += ", which is not " + s.options.CA
	}
	return errors.New(WithHint("server "+s.Name()+": "+what, words.Hint(s.Endpoint, f)))
}

// Refusal returns the error of an answer with a status that is not OK. A gateway's has a kind and the hook's message;
// other servers' have whatever they have.
func (s *Server) Refusal(r *client.Response, handler string) *CallError {
	e := &CallError{
		status: r.Status, Kind: r.Header.Get(gateway.ErrorKindHeader), callID: r.Header.Get(gateway.CallIDHeader),
	}
	if r.GRPC != nil {
		e.Message = cmp.Or(r.GRPC.Message(), "the status has no text")
		for _, detail := range r.GRPC.Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok {
				e.Kind = info.GetReason()
			}
		}
		e.absent = r.GRPC.Code() == codes.Unimplemented
		if e.Kind == "" && e.absent {
			e.Hint = "The server does not serve this hook."
		}
		return e
	}
	e.absent = r.HTTPCode == http.StatusNotFound
	var body struct {
		Message string `json:"message"`
	}
	switch {
	case json.Unmarshal(r.Body, &body) == nil && body.Message != "":
		e.Message = body.Message
	case r.IsGRPC():
		e.Message = "this is a gRPC server"
		e.Hint = "Call it with --server grpcs://" + s.Endpoint.Authority + "."
	case len(bytes.TrimSpace(r.Body)) == 0:
		e.Message = "the answer has no body"
	default:
		e.Message = "the body is " + excerptOf(r.Body)
	}
	switch {
	case e.Kind != "" || e.Hint != "":
	case r.HTTPCode == http.StatusNotFound && handler == "":
		e.Hint = "The answer is not a gateway's. If this is an extension, use --handler: see " +
			"\"hookgate get handlers\"."
	default:
		e.Hint = "The answer is not a gateway's. Is --server right?"
	}
	return e
}

// excerptOf returns the beginning of a body for a message, on one line.
func excerptOf(data []byte) string {
	const most = 200
	return text.Cut(strings.Join(strings.Fields(strings.ToValidUTF8(string(data), "?")), " "), most)
}
