// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"regexp"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/via"
)

// faultsRequest reports whether an answer finds fault with the request, as the status codes from 400 to 499 do over
// HTTP. ResourceExhausted does so if its text is about the size of a message: it may as well mean that the extension
// has too much to do.
func faultsRequest(code codes.Code, message string) bool {
	switch code {
	case codes.ResourceExhausted:
		return refusesSize.MatchString(message)
	case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated:
		return true
	default:
		return false
	}
}

// refusesSize matches what servers of gRPC say of a message that is larger than they take or send: those in Go, Java
// and Swift, of the C core (C++, Python, Ruby, PHP), Node.js, .NET, Rust and Connect, and what extensions may say
// themselves. There are no codes for it. A queue, a quota or a rate that is exceeded is none.
var refusesSize = regexp.MustCompile(`(?i)\bmessage (after decompression |that decompresses to a size |with a size )?` +
	`larger than\b|` +
	`\b(message|message length|message size|request|request body|payload|entity|body) (is )?too (large|big)\b|` +
	`\bmessage size( \d+)?( bytes)?( is larger than| exceeds)\b|^length limit exceeded|` +
	`\b(message|request|payload)( size)? (has )?exceed(s|ed) (the )?(configured |allowed )*` +
	`max(imum)?( allowed| configured)*` +
	`( message| payload| request)? (size|length)\b`)

// tooLargeOverHTTP is what gRPC says of a proxy that answers with 413.
const tooLargeOverHTTP = "HTTP status code received from server: 413"

// usualLimit is the size of a message that servers of gRPC take unless they are told otherwise.
const usualLimit = 4 << 20

// refused returns the error of a call that came to no answer, and whether the server does not implement the method. The
// texts are fixed, or a gateway's: those of gRPC and of the extension go to the log.
func (r *request) refused(
	ctx context.Context, conn *connect.GRPC, err error,
) (failed *hook.Error, unimplemented bool) {
	code := status.Code(err)
	if kind, ok := decidedReason(err); ok && ctx.Err() == nil {
		after, _ := retryInfo(err)
		failed = r.decidedBy(kind, status.Convert(err).Message(), after, err)
		failed.Refused = kind != hook.InvalidRequest && code == codes.InvalidArgument
		return failed, false
	}
	// The server knows the deadline, and may be the first to report it.
	if ctx.Err() != nil || code == codes.DeadlineExceeded {
		return r.ended(ctx, err), false
	}
	message := status.Convert(err).Message()
	if strings.Contains(message, tooLargeOverHTTP) {
		r.inconclusive = true
		return r.fail(hook.BadResponse, "answered 413 Request Entity Too Large", err), false
	}
	if f := conn.Classify(r.rpc, err); f != nil {
		return r.failed(f, err), false
	}
	r.inconclusive = faultsRequest(code, message)
	kind, text := hook.BadResponse, "answered "+code.String()
	switch code {
	case codes.Unavailable:
		kind = hook.Unreachable
	case codes.Unimplemented:
		text += ": it has no " + strings.TrimPrefix(r.hook.Method, "/")
	case codes.ResourceExhausted:
		if r.inconclusive || r.rpc.Sent.Load() > usualLimit {
			text += ": a gRPC server accepts at most 4 MiB, unless it is configured otherwise"
		}
	case codes.Unauthenticated:
		text += ": it requires callers to authenticate"
	}
	failed = r.fail(kind, text, err)
	failed.Refused = code == codes.InvalidArgument
	return failed, code == codes.Unimplemented
}

// retryInfo returns how long a server asks to wait before the same request is sent again, and reports whether it asks
// for that: only Unavailable with a google.rpc.RetryInfo says that the request was not processed.
func retryInfo(err error) (time.Duration, bool) {
	st := status.Convert(err)
	if st.Code() != codes.Unavailable {
		return 0, false
	}
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok && info.GetRetryDelay().CheckValid() == nil {
			return max(0, info.GetRetryDelay().AsDuration()), true
		}
	}
	return 0, false
}

// decidedReason returns the kind of the error that a gateway has decided, and reports whether err is such an error.
func decidedReason(err error) (kind hook.Kind, ok bool) {
	st := status.Convert(err)
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == via.ErrorDomain {
			return via.Decided(info.GetReason(), func(e *hook.Error) bool { return e.GRPCCode() == st.Code() })
		}
	}
	return 0, false
}
