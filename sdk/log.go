// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// The kinds of failed calls. Those that the gateway has, too, mean the same there. The packages of all languages write
// the same lines: docs/extensions.md has them.
const (
	kindAmbiguous      = "Ambiguous"
	kindCanceled       = "Canceled"
	kindFailure        = "Failure"
	kindInternal       = "Internal"
	kindInvalidRequest = "InvalidRequest"
	kindOverloaded     = "Overloaded"
	kindStatus         = "Status"
	kindTimeout        = "Timeout"
	kindUnknownHandler = "UnknownHandler"
	kindUnknownHook    = "UnknownHook"
)

// problem is what the log says about a failed call.
type problem struct {
	kind  string
	code  codes.Code // with which the call ends, if it has no answer
	text  string
	level slog.Level // Info if it is not set; kindInternal is always Error
	stack []byte     // of a panic
}

// ended returns the problem of a call that ends with a status.
func ended(kind string, err error) *problem {
	s := status.Convert(err)
	return &problem{kind: kind, code: s.Code(), text: s.Message()}
}

// kindOf returns the kind of a status with which a handler ended a call.
func kindOf(code codes.Code) string {
	if code == codes.InvalidArgument {
		return kindInvalidRequest
	}
	return kindStatus
}

// problemOf returns the problem that an answer says, or nil.
func problemOf(out proto.Message) *problem {
	m := out.ProtoReflect()
	s := statusField(m.Descriptor())
	if s == nil || m.Get(s).Enum() == success {
		return nil
	}
	if n := m.Get(s).Enum(); n != failure {
		return &problem{
			kind: kindInternal,
			text: fmt.Sprintf("status of the answer: want %d (Success) or %d (Failure), got %d", success, failure, n),
		}
	}
	p := &problem{kind: kindFailure}
	if f := m.Descriptor().Fields().ByName("message"); f != nil && f.Kind() == protoreflect.StringKind {
		p.text = m.Get(f).String()
	}
	return p
}

// logCall writes the line of a call. The handler is "" if none was selected, and p is nil if the call succeeded. A call
// that no gateway sent has no id.
func (x *Extension) logCall(ctx context.Context, hook, handler string, start time.Time, p *problem) {
	level, text := slog.LevelDebug, "call answered"
	attrs := []slog.Attr{slog.String("hook", hook)}
	if handler != "" {
		attrs = append(attrs, slog.String("handler", handler))
	}
	if id := callID(ctx); id != "" {
		attrs = append(attrs, slog.String("call_id", id))
	}
	if p != nil {
		level, text = p.level, "call failed"
		if p.kind == kindInternal {
			level = slog.LevelError
		}
		attrs = append(attrs, slog.String("kind", p.kind))
		if p.code != codes.OK {
			attrs = append(attrs, slog.String("code", codeName(p.code)))
		}
		attrs = append(attrs, slog.String("error", p.text))
	}
	attrs = append(attrs, slog.Duration("took", time.Since(start)))
	if p != nil && p.stack != nil {
		attrs = append(attrs, slog.String("stack", string(p.stack)))
	}
	x.logger().LogAttrs(ctx, level, text, attrs...)
}

// codeName returns the name of a code in gRPC's specification: INVALID_ARGUMENT for InvalidArgument.
func codeName(code codes.Code) string {
	if code == codes.Canceled {
		return "CANCELLED"
	}
	var name strings.Builder
	for i, c := range code.String() {
		if i > 0 && 'A' <= c && c <= 'Z' {
			name.WriteByte('_')
		}
		name.WriteRune(c)
	}
	return strings.ToUpper(name.String())
}

// callID returns the id of the call that ctx belongs to, or "".
func callID(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, callIDKey); len(values) > 0 {
		return values[0]
	}
	return ""
}
