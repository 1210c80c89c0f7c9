// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// transport sends requests to the extension. It is safe for concurrent use.
type transport interface {
	// call sends a request to a handler; an empty one is for Discovery.
	call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *exchange
	// send sends bytes that need not be a request.
	send(ctx context.Context, h *catalog.Hook, handler string, body []byte) *exchange
	close()
}

// clientTransport is the transport of a session.
type clientTransport struct {
	client *client.Client
	codec  *codec.Codec
	grpc   bool
	now    func() time.Time
}

var _ transport = (*clientTransport)(nil)

func (t *clientTransport) close() { t.client.Close() }

func (t *clientTransport) call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *exchange {
	if !t.grpc {
		body, err := t.codec.Append(nil, req)
		if err != nil {
			return &exchange{handler: handler, outcome: lost, text: err.Error()}
		}
		return t.send(ctx, h, handler, body)
	}
	x := &exchange{handler: handler, sent: h.Method + ", " + size(proto.Size(req))}
	if proto.Size(req) < 64<<10 { // larger requests are padded, and their beginning says nothing
		x.sent += ": " + excerpt(render(req))
	}
	start := t.now()
	r := t.client.Call(ctx, h, handler, req)
	x.took = t.now().Sub(start)
	t.received(x, r)
	return x
}

// received records the response, and what is misspelt in it.
func (t *clientTransport) received(x *exchange, r *client.Response) {
	x.received(r)
	if x.message != nil {
		// What else is wrong with the message is for the checks of it.
		_ = t.codec.CheckGuarded(x.message, codec.Guard{Misspelt: func(m codec.Misspelling) {
			if text := m.String(); !slices.Contains(x.misspelt, text) {
				x.misspelt = append(x.misspelt, text)
			}
		}})
	}
}

func (t *clientTransport) send(ctx context.Context, h *catalog.Hook, handler string, body []byte) *exchange {
	sent := fmt.Sprintf("POST %s, %s: %s", h.Path(url.PathEscape(handler)), size(len(body)), excerpt(body))
	if t.grpc {
		sent = fmt.Sprintf("%s, a raw body of %s: %q", h.Method, size(len(body)), body[:min(len(body), 40)])
	}
	x := &exchange{handler: handler, sent: sent}
	start := t.now()
	r := t.client.Send(ctx, h, handler, body)
	x.took = t.now().Sub(start)
	t.received(x, r)
	return x
}

// outcome classifies the answer of an extension, for both protocols.
type outcome int

const (
	answered outcome = iota // with an answer of the hook, which may be wrong
	refused                 // as a mistake of the caller's: HTTP 4xx, gRPC InvalidArgument and the like
	failed                  // as a failure of its own: HTTP 5xx, gRPC Internal and the like
	lost                    // the connection broke, or there was none
	late                    // not before the deadline
)

// exchange is one request and its answer. It is immutable.
type exchange struct {
	handler string
	sent    string // what was sent, in short
	outcome outcome
	code    string // "HTTP 200 OK" or "gRPC InvalidArgument"; empty if nothing came
	text    string // what came instead of an answer, or why nothing came
	body    []byte // of an answer: its JSON

	message  proto.Message // the answer; nil if it is not one of the hook
	wrong    error         // why it is not one
	parsed   *document     // what can be read of the answer in any case
	misspelt []string      // which members mean nothing
	took     time.Duration

	failure *connect.Failure // why there was no answer
	isGRPC  bool             // a server of gRPC answered over HTTP
}

// received records the response.
func (x *exchange) received(r *client.Response) {
	x.code, x.failure, x.isGRPC = r.Status, r.Failure, r.IsGRPC()
	switch {
	case r.OK():
		x.body, x.message, x.wrong = r.Body, r.Message, r.Invalid
		if r.HTTPCode == 0 && x.message != nil {
			x.body = render(x.message) // the mandated JSON has not all that messages have
		}
		if x.wrong != nil {
			x.message = nil
		}
		if x.body != nil {
			x.decoded()
		}
		return
	case r.GRPC != nil:
		x.outcome, x.text = outcomeOf(r.GRPC.Code()), r.GRPC.Message()
	case r.HTTPCode >= 400 && r.HTTPCode < 500:
		x.outcome, x.text = refused, string(r.Body)
	case r.HTTPCode != 0:
		x.outcome, x.text = failed, string(r.Body)
	default:
		x.outcome, x.text = lost, r.Failure.Text
	}
	if r.Failure != nil && (r.Failure.Kind == hook.Timeout || r.Failure.Kind == hook.Canceled) {
		x.outcome = late
	}
	if x.outcome == lost || x.outcome == late {
		x.code = ""
	}
}

func outcomeOf(code codes.Code) outcome {
	switch code {
	case codes.OK:
		return answered
	case codes.InvalidArgument, codes.NotFound, codes.Unimplemented, codes.FailedPrecondition, codes.OutOfRange,
		codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated, codes.AlreadyExists:
		return refused
	case codes.DeadlineExceeded, codes.Canceled:
		return late
	case codes.Unavailable:
		return lost
	}
	return failed
}

// got summarizes the response.
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

// status returns the status of the answer, or "" without an answer.
func (x *exchange) status() string {
	if x.outcome != answered || x.parsed == nil {
		return ""
	}
	return x.parsed.Status
}

// isAnswer reports whether the response is an answer with a status.
func (x *exchange) isAnswer() bool {
	return x.outcome == answered && x.message != nil && (x.status() == success || x.status() == failure)
}

// complaint returns the text with which a request was refused, in any form, or "" if it was not.
func (x *exchange) complaint() string {
	switch {
	case x.status() == failure:
		return failure + ": " + x.parsed.Message
	case x.outcome == refused, x.outcome == failed:
		return x.code + ": " + x.text
	}
	return ""
}

// decoded decodes the body of an answer.
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
