// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
)

// maxBytes is how large requests and answers may be.
const maxBytes = 20 << 20

// transport sends requests to the extension. It is safe for concurrent use.
type transport interface {
	// call sends a request to a handler; an empty one is for Discovery.
	call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *exchange
	// send sends bytes that need not be a request.
	send(ctx context.Context, h *catalog.Hook, handler string, body []byte) *exchange
	close()
}

// outcome is what an extension made of a request, in the words that both protocols have.
type outcome int

const (
	answered outcome = iota // with an answer of the hook, which may be wrong
	refused                 // as a mistake of the caller's: HTTP 4xx, gRPC InvalidArgument and the like
	failed                  // as a failure of its own: HTTP 5xx, gRPC Internal and the like
	lost                    // the connection broke, or there was none
	late                    // not before the deadline
)

// exchange is one request and what came of it. It does not change any more.
type exchange struct {
	handler string
	sent    string // what was sent, in short
	outcome outcome
	code    string // "HTTP 200 OK" or "gRPC InvalidArgument"; empty if nothing came
	text    string // what came instead of an answer, or why nothing came
	body    []byte // of an answer: its JSON
	content string // Content-Type, for REST

	message proto.Message // the answer; nil if it is not one of the hook
	wrong   error         // why it is not one
	parsed  *document     // what can be read of the answer in any case
	took    time.Duration
	err     error // of lost and late
}

// got returns in short what came.
func (x *exchange) got() string {
	switch {
	case x.outcome == late:
		return "no answer within " + x.took.Round(100*time.Millisecond).String()
	case x.code == "":
		return "no answer: " + x.text
	case x.outcome == answered:
		return x.code + ": " + excerpt(x.body)
	case x.text == "":
		return x.code
	}
	return x.code + ": " + excerpt(x.text)
}

// status returns the status of an answer; empty if there is none.
func (x *exchange) status() string {
	if x.outcome != answered || x.parsed == nil {
		return ""
	}
	return x.parsed.Status
}

// isAnswer tells whether there is an answer with a status.
func (x *exchange) isAnswer() bool {
	return x.outcome == answered && x.message != nil && (x.status() == success || x.status() == failure)
}

// complaint returns the text with which a request was turned down, in whatever way; empty if it was not.
func (x *exchange) complaint() string {
	switch {
	case x.status() == failure:
		return failure + ": " + x.parsed.Message
	case x.outcome == refused, x.outcome == failed:
		return x.code + ": " + x.text
	}
	return ""
}

// decoded fills in what the body of an answer says.
func (x *exchange) decoded() {
	x.parsed = &document{}
	if err := x.parsed.read(x.body); err != nil {
		x.parsed = nil
		if x.wrong == nil {
			x.wrong, x.message = err, nil
		}
	}
}

// excerpt returns the beginning of a text, on one line.
func excerpt[T string | []byte](text T) string {
	const most = 400
	long := len(text) > 2*most
	s := string(text[:min(len(text), 2*most)]) // bodies may be large
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if long || len(s) > most {
		return strings.ToValidUTF8(s[:min(len(s), most)], "") + "…"
	}
	return s
}

// size returns a number of bytes for people.
func size(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
