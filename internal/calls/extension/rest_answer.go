// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/body"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/via"
)

const (
	// maxErrorBody is the size of what goes to the log of the body of an answer that is not 200.
	maxErrorBody = 512
)

// answer reads and checks an answer, and returns its message, a fresh one. If anything fails, it returns none of it.
func (r *REST) answer(ctx context.Context, x *restRequest, resp *http.Response) (proto.Message, *hook.Error) {
	if resp.StatusCode != http.StatusOK {
		return nil, x.statusError(resp)
	}
	encodings := strings.Join(resp.Header.Values("Content-Encoding"), ",")
	work := x.begin(ctx)
	read, err := r.bodies.Read(resp.Body, resp.ContentLength, encodings, body.Guard{Reserve: x.reserve, Work: work})
	x.received = read.Wire
	if failed := x.beyond(err); failed != nil {
		return nil, failed
	}
	switch {
	case err == nil:
	case errors.Is(err, body.ErrTooLarge):
		return nil, x.fail(hook.BadResponse, fmt.Sprintf("answer is larger than %d bytes", r.config.BodyBytes), nil)
	case errors.Is(err, body.ErrEncoding):
		encoding := strings.ToLower(encodings)
		return nil, x.fail(hook.BadResponse,
			fmt.Sprintf("answer is encoded with Content-Encoding %s, which was not "+
				"requested", quote(encoding)), nil)
	default:
		return nil, x.interrupted(ctx, err)
	}

	out := x.hook.Response.New().Interface()
	if err := r.decode(x, read.Bytes, out); err != nil {
		if failed := x.beyond(err); failed != nil {
			return nil, failed
		}
		if ctx.Err() != nil {
			// A server that sees the client's side close may end its half of a body in good order, before the client
			// has closed.
			return nil, x.ended(ctx, err)
		}
		return nil, x.fail(hook.BadResponse, undecodable(resp, read.Bytes, err), err)
	}
	if text := wrongStatus(out); text != "" {
		return nil, x.fail(hook.BadResponse, "answer: "+text, nil)
	}
	return out, nil
}

// statusError returns the error of a status code that is not 200. What the extension wrote goes to the log only.
func (x *restRequest) statusError(resp *http.Response) *hook.Error {
	limit := int64(maxErrorBody)
	kind, decided := decidedKind(resp)
	if decided {
		limit = 2 * limits.LoopQuoteBytes // of the message, and room for the rest of the answer
	}
	// An error of the read would only mean that there is less to log.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	x.received = int64(len(body))
	if decided {
		var answer struct{ Message string }
		_ = json.Unmarshal(body, &answer) // an answer that is not a gateway's has no message
		after, _ := retryAfter(resp, time.Now())
		failed := x.decidedBy(kind, answer.Message, after, nil)
		failed.Refused = kind != hook.InvalidRequest && resp.StatusCode == http.StatusBadRequest
		return failed
	}
	var cause error
	if len(body) > 0 {
		cause = &StatusError{resp.StatusCode, string(body[:min(len(body), maxErrorBody)]), len(body) > maxErrorBody}
	}

	// 429 finds no fault with the request: the extension has too much to do.
	x.inconclusive = resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests
	message := statusText(resp.StatusCode)
	switch {
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc"),
		resp.StatusCode == http.StatusUnsupportedMediaType:
		message = "the server speaks gRPC: set protocol GRPC"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		message += ": redirects are not followed"
	case resp.StatusCode == http.StatusMethodNotAllowed, resp.StatusCode == http.StatusNotImplemented:
		x.absent = true
	case resp.StatusCode == http.StatusNotFound:
		x.absent = true
		message += fmt.Sprintf(" at %s%s", x.route.prefix, x.hook.Path(x.handler))
	}
	return x.fail(hook.BadResponse, message, cause)
}

// decidedKind returns the kind of the error that a gateway has decided, and reports whether resp is such an answer. A
// loop is known by its status code.
func decidedKind(resp *http.Response) (kind hook.Kind, ok bool) {
	if resp.StatusCode == http.StatusLoopDetected {
		return hook.Loop, true
	}
	return via.Decided(resp.Header.Get(via.ErrorKindHeader),
		func(e *hook.Error) bool { return e.HTTPStatus() == resp.StatusCode })
}

// undecodable returns why an answer cannot be decoded.
func undecodable(resp *http.Response, body []byte, err error) string {
	text := bytes.TrimLeft(body, " \t\r\n")
	if len(text) == 0 {
		return "answer is empty"
	}
	// Go's servers call JSON text/plain, so the type says something only of a text that is not JSON.
	media, _, mediaErr := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if text[0] != '{' && text[0] != '[' && mediaErr == nil && media != "application/json" {
		return fmt.Sprintf("answer is not JSON (Content-Type %s)", cut(media))
	}
	return "answer: " + cut(err.Error())
}

// wrongStatus returns what is wrong with the status of an answer, or with what a success says besides; empty if nothing
// is. A Failure is never refused for the rest of it, because Ignore would hide the refusal.
func wrongStatus(m proto.Message) string {
	s, ok := catalog.StatusOf(m)
	if !ok {
		return "has no status"
	}
	switch s {
	case catalog.Success:
		return unsaid(m)
	case catalog.Failure:
		return ""
	case catalog.Unspecified:
		return `status: want "Success" or "Failure", got ""`
	default:
		return fmt.Sprintf(`status: want "Success" or "Failure", got %d`, s)
	}
}

// unsaid returns what a successful answer says that means nothing, or what one of infrastructure does not say. Without
// it, an empty answer would be taken for infrastructure that is there, or that is gone.
func unsaid(m proto.Message) string {
	if r, ok := m.(interface{ GetRetryAfterSeconds() int32 }); ok && r.GetRetryAfterSeconds() < 0 {
		return fmt.Sprintf("retryAfterSeconds: %d is negative", r.GetRetryAfterSeconds())
	}
	switch a := m.(type) {
	case interface {
		GetPhase() infrastructurev1alpha1.Phase
	}:
		if a.GetPhase() == infrastructurev1alpha1.Phase_PHASE_UNSPECIFIED {
			return `phase: want "Provisioning", "Ready" or "Failed", got ""`
		}
	case interface {
		GetState() infrastructurev1alpha1.DeletionState
	}:
		if a.GetState() == infrastructurev1alpha1.DeletionState_DELETION_STATE_UNSPECIFIED {
			return `state: want "Deleting" or "Gone", got ""`
		}
	}
	return ""
}

// unanswered returns the error of a request that got no answer.
func (x *restRequest) unanswered(ctx context.Context, err error) *hook.Error {
	x.route.host.partner.refused(err)
	if ctx.Err() != nil {
		if !x.connected {
			x.unresolved = x.route.host.unresolved(err)
		}
		return x.ended(ctx, err)
	}
	f := *connect.Classify(err)
	switch {
	case f.Kind == hook.BadResponse:
	case connect.IsBrokenStream(err) && !x.route.host.answers.Load():
		// gRPC's C core, as in Python, does so to any request with another Content-Type.
		f.Text += ": if the server speaks gRPC, set protocol GRPC"
	case f.Reason == connect.HostNotFound && x.route.host.inCluster:
		f.Text += ": create the Service, or name another in spec.clientConfig.service"
	}
	return x.failed(&f, err)
}

// decode decodes an answer, a large one as heavy work.
func (r *REST) decode(x *restRequest, text []byte, out proto.Message) error {
	guard := codec.Guard{Reserve: x.reserve, Misspelt: x.spell}
	if len(text) > budget.Step {
		if err := x.work.Step(); err != nil {
			return err
		}
		defer x.work.End()
		guard.Step = x.work.Step
	}
	if _, err := r.config.Codec.DecodeGuarded(text, out, guard); err != nil {
		return err
	}
	return checkPatches(out, guard.Step)
}

// interrupted returns the error of an answer that had begun and could not be read to its end. Whether its connection
// was closed or reset makes no difference: either way, the extension has begun an answer that is none.
func (x *restRequest) interrupted(ctx context.Context, err error) *hook.Error {
	switch {
	case ctx.Err() != nil:
		return x.ended(ctx, err)
	case errors.Is(err, body.ErrGzip):
		return x.fail(hook.BadResponse, "answer is not valid gzip", err)
	case errors.Is(err, errSmallChunks):
		return x.fail(hook.BadResponse, err.Error()+": most of what is sent is not the answer", nil)
	}
	return x.fail(hook.BadResponse, "answer ended early", err)
}

// cut shortens a text to what a condition can hold, and masks secrets in it.
func cut(s string) string { return redact.Cut(s, limits.ErrorQuoteBytes) }

// quote returns what a peer sent as a message may show it.
func quote(s string) string { return strconv.Quote(cut(s)) }
