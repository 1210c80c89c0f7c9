// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// callIDKey is the metadata in which a gateway sends the id of a call.
const callIDKey = "hookgate-call-id"

// Call answers a request in this process as a server would: the request's member handler selects the handler. The
// error has a gRPC status.
func (x *Extension) Call(ctx context.Context, in proto.Message) (proto.Message, error) {
	if err := x.Err(); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	name := in.ProtoReflect().Descriptor().FullName()
	for _, s := range x.services {
		for _, m := range s.methods {
			if m.request.Descriptor().FullName() == name {
				return x.call(ctx, m, in)
			}
		}
	}
	return nil, status.Errorf(codes.Unimplemented, "no handler of the extension takes %s", name)
}

// call answers a request, and logs how.
func (x *Extension) call(ctx context.Context, m *method, in proto.Message) (proto.Message, error) {
	start := time.Now()
	if m.discovery {
		return x.discover(ctx, m, in)
	}
	h, err := m.handler(in)
	if err != nil {
		x.log(ctx, slog.LevelInfo, m, nil, start, status.Code(err).String())
		return nil, err
	}
	out, err := h.recovered(ctx, in)
	if err != nil {
		return x.fail(ctx, h, start, err)
	}
	level, outcome, more := outcomeOf(out)
	x.log(ctx, level, m, h, start, outcome, more...)
	return out, nil
}

// handler returns the handler that a request selects.
func (m *method) handler(in proto.Message) (*handler, error) {
	name := ""
	if f := in.ProtoReflect().Descriptor().Fields().ByName("handler"); f != nil && f.Kind() == protoreflect.StringKind {
		name = in.ProtoReflect().Get(f).String()
	}
	names := make([]string, len(m.handlers))
	for i, h := range m.handlers {
		if h.name == name {
			return h, nil
		}
		names[i] = h.name
	}
	switch {
	case len(m.handlers) == 0:
		return nil, status.Errorf(codes.Unimplemented, "%s has no handler", m.hook)
	case name != "":
		return nil, status.Errorf(codes.NotFound, "no handler of %s is named %.100q: there is %s", m.hook, name,
			strings.Join(names, ", "))
	case len(m.handlers) > 1:
		return nil, status.Errorf(codes.InvalidArgument, "%s has several handlers: name one of %s", m.hook,
			strings.Join(names, ", "))
	}
	return m.handlers[0], nil
}

// panicked is the error of a handler that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprint(p.value) }

// recovered runs the handler.
func (h *handler) recovered(ctx context.Context, in proto.Message) (out proto.Message, err error) {
	defer func() {
		if value := recover(); value != nil {
			out, err = nil, &panicked{value, debug.Stack()}
		}
	}()
	return h.run(ctx, in)
}

// fail answers a call whose handler returned an error.
func (x *Extension) fail(ctx context.Context, h *handler, start time.Time, err error) (proto.Message, error) {
	level, outcome := slog.LevelInfo, "Failure"
	var text string
	var more []slog.Attr
	var answer *failed
	var crash *panicked
	// A status that is wrapped is the error of a backend.
	coded, isCoded := err.(interface{ GRPCStatus() *status.Status })
	switch {
	case ctx.Err() != nil: // nothing is known but that the caller is gone
		err = status.FromContextError(ctx.Err()).Err()
		x.log(ctx, level, h.method, h, start, status.Code(err).String())
		return nil, err
	case isCoded:
		more = append(more, slog.String("error", coded.GRPCStatus().Message()))
		x.log(ctx, level, h.method, h, start, coded.GRPCStatus().Code().String(), more...)
		return nil, err
	case errors.As(err, &answer):
		text = err.Error()
		more = append(more, slog.String("message", text))
	case errors.Is(err, errNoAnswer):
		level = slog.LevelError
		text = fmt.Sprintf("handler %q gave no answer: it has to return Done, Wait, Patches or an error", h.name)
		more = append(more, slog.String("error", text))
	case errors.As(err, &crash):
		level, text = slog.LevelError, internalError(h, crash.value)
		more = append(more, slog.String("error", err.Error()), slog.String("stack", string(crash.stack)))
	default:
		level, text = slog.LevelError, internalError(h, err)
		more = append(more, slog.String("error", err.Error()))
	}
	out := h.method.response.New()
	s := statusField(out.Descriptor())
	if s == nil {
		x.log(ctx, level, h.method, h, start, codes.Internal.String(), more...)
		return nil, status.Error(codes.Internal, text)
	}
	out.Set(s, protoreflect.ValueOfEnum(failure))
	setMessage(out, text)
	x.log(ctx, level, h.method, h, start, outcome, more...)
	return out.Interface(), nil
}

// internalError returns what callers learn of an error that was not made for them. It has the type of the error only,
// because its text may differ from call to call, or hold a secret.
func internalError(h *handler, what any) string {
	return fmt.Sprintf("handler %q: internal error (%T); the log of the extension has it under the call's id",
		h.name, what)
}

// outcomeOf returns how an answer is logged.
func outcomeOf(out proto.Message) (slog.Level, string, []slog.Attr) {
	m := out.ProtoReflect()
	s := statusField(m.Descriptor())
	if s != nil && m.Get(s).Enum() == success {
		if retry := m.Descriptor().Fields().ByName("retry_after_seconds"); retry != nil && m.Has(retry) {
			return slog.LevelDebug, "Wait", nil
		}
		return slog.LevelDebug, "Success", nil
	}
	var more []slog.Attr
	if f := m.Descriptor().Fields().ByName("message"); f != nil && f.Kind() == protoreflect.StringKind {
		more = append(more, slog.String("message", m.Get(f).String()))
	}
	return slog.LevelInfo, "Failure", more
}

// log writes the line of a call. h is nil if none was selected.
func (x *Extension) log(
	ctx context.Context, level slog.Level, m *method, h *handler, start time.Time, outcome string, more ...slog.Attr,
) {
	attrs := []slog.Attr{slog.String("hook", m.hook)}
	if h != nil {
		attrs = append(attrs, slog.String("handler", h.name))
	}
	attrs = append(attrs, slog.String("callID", callID(ctx)),
		slog.Float64("durationMs", float64(time.Since(start).Microseconds())/1000), slog.String("outcome", outcome))
	x.logger().LogAttrs(ctx, level, "call", append(attrs, more...)...)
}

// callID returns the id of the call that ctx belongs to, or "".
func callID(ctx context.Context) string {
	if values := metadata.ValueFromIncomingContext(ctx, callIDKey); len(values) > 0 {
		return values[0]
	}
	return ""
}
