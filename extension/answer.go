// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/body"
)

const (
	// maxErrorBody is how much of the body of an answer that is not 200 goes to the log.
	maxErrorBody = 512
	// maxQuoted bounds what an extension wrote in a message.
	maxQuoted = 256
)

// answer reads and checks an answer. Its message is a fresh one, and whatever fails, nothing of it is returned.
func (r *REST) answer(ctx context.Context, x *exchange, resp *http.Response) (proto.Message, *hook.Error) {
	if resp.StatusCode != http.StatusOK {
		return nil, x.refused(resp)
	}
	read, err := r.bodies.Read(resp.Body, resp.ContentLength, strings.Join(resp.Header.Values("Content-Encoding"), ","))
	x.received = read.Wire
	switch {
	case err == nil:
	case errors.Is(err, body.ErrTooLarge):
		return nil, x.fail(hook.BadResponse, fmt.Sprintf("answer is larger than %d bytes", r.config.MaxBytes), nil)
	case errors.Is(err, body.ErrEncoding):
		encoding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ","))
		return nil, x.fail(hook.BadResponse, fmt.Sprintf("answer is encoded with Content-Encoding %s, which was not asked for", quote(encoding)), nil)
	default:
		return nil, x.interrupted(ctx, err)
	}

	out := x.hook.Response.New().Interface()
	if err := r.config.Codec.Decode(read.Bytes, out); err != nil {
		if ctx.Err() != nil {
			// A server that sees our side close may end its half of a body in good order, before we have closed.
			return nil, x.ended(ctx, err)
		}
		return nil, x.fail(hook.BadResponse, undecodable(resp, read.Bytes, err), err)
	}
	if text := wrongStatus(out); text != "" {
		return nil, x.fail(hook.BadResponse, "answer: "+text, nil)
	}
	return out, nil
}

// refused is the error of a status code that is not 200. What the extension wrote goes to the log only.
func (x *exchange) refused(resp *http.Response) *hook.Error {
	// An error of the read would only mean that there is less to log.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody+1))
	x.received = int64(len(body))
	var cause error
	if len(body) > 0 {
		more := ""
		if len(body) > maxErrorBody {
			body, more = body[:maxErrorBody], "…"
		}
		cause = fmt.Errorf("answer with status code %d: %q%s", resp.StatusCode, body, more)
	}

	text := "answered " + strconv.Itoa(resp.StatusCode)
	if name := http.StatusText(resp.StatusCode); name != "" {
		text += " " + name
	}
	switch {
	case strings.HasPrefix(resp.Header.Get("Content-Type"), "application/grpc"), resp.StatusCode == http.StatusUnsupportedMediaType:
		text = "the server speaks gRPC: set protocol GRPC"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		text += ": redirects are not followed"
	case resp.StatusCode == http.StatusNotFound:
		x.absent = true
		text += fmt.Sprintf(" at %s%s", x.route.prefix, x.hook.Path(x.handler))
	}
	return x.fail(hook.BadResponse, text, cause)
}

// undecodable says why an answer cannot be decoded.
func undecodable(resp *http.Response, body []byte, err error) string {
	text := bytes.TrimLeft(body, " \t\r\n")
	if len(text) == 0 {
		return "answer is empty"
	}
	// Go's servers call JSON text/plain, so the type means something only where the text is none.
	media, _, mediaErr := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if text[0] != '{' && text[0] != '[' && mediaErr == nil && media != "application/json" {
		return fmt.Sprintf("answer is not JSON (Content-Type %s)", cut(media))
	}
	return "answer: " + cut(err.Error())
}

// wrongStatus says what is wrong with the status of an answer, if anything is.
func wrongStatus(m proto.Message) string {
	s, ok := catalog.StatusOf(m)
	if !ok {
		return "has no status"
	}
	switch s {
	case catalog.Success, catalog.Failure:
		return ""
	case catalog.Unspecified:
		return `status: want "Success" or "Failure", got ""`
	default:
		return fmt.Sprintf(`status: want "Success" or "Failure", got %d`, s)
	}
}

// cut shortens a text to what a condition can hold.
func cut(s string) string {
	if len(s) > maxQuoted {
		return strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return s
}

// quote returns what a peer sent as a message may show it.
func quote(s string) string { return strconv.Quote(cut(s)) }
