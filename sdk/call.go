// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
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
	h, kind, err := m.handler(in)
	if err != nil {
		x.logCall(ctx, m.hook, "", start, ended(kind, err))
		return nil, err
	}
	out, err := h.recovered(ctx, in)
	if err != nil {
		return x.fail(ctx, h, start, err)
	}
	x.logCall(ctx, m.hook, h.name, start, problemOf(out))
	return out, nil
}

// handler returns the handler that a request selects, or the kind of the error.
func (m *method) handler(in proto.Message) (selected *handler, kind string, err error) {
	name := ""
	if f := in.ProtoReflect().Descriptor().Fields().ByName("handler"); f != nil && f.Kind() == protoreflect.StringKind {
		name = in.ProtoReflect().Get(f).String()
	}
	names := make([]string, len(m.handlers))
	for i, h := range m.handlers {
		if h.name == name {
			return h, "", nil
		}
		names[i] = h.name
	}
	switch {
	case len(m.handlers) == 0:
		return nil, kindUnknownHook, status.Errorf(codes.Unimplemented, "%s has no handler", m.hook)
	case name != "":
		return nil, kindUnknownHandler, status.Errorf(codes.NotFound, "no handler of %s is named %.100q: name one of %s",
			m.hook, name, strings.Join(names, ", "))
	case len(m.handlers) > 1:
		return nil, kindAmbiguous, status.Errorf(codes.InvalidArgument, "%s has several handlers: name one of %s",
			m.hook, strings.Join(names, ", "))
	}
	return m.handlers[0], "", nil
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
	// A status that is wrapped is the error of a backend.
	coded, isCoded := err.(interface{ GRPCStatus() *status.Status })
	switch {
	case ctx.Err() != nil: // nothing is known but that the caller is gone
		err = status.FromContextError(ctx.Err()).Err()
		kind := kindCanceled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			kind = kindTimeout
		}
		x.logCall(ctx, h.method.hook, h.name, start, ended(kind, err))
		return nil, err
	case isCoded:
		x.logCall(ctx, h.method.hook, h.name, start, ended(kindOf(coded.GRPCStatus().Code()), err))
		return nil, err
	}
	text, p := h.explain(err)
	out := h.method.response.New()
	s := statusField(out.Descriptor())
	if s == nil {
		p.code = codes.Internal
		x.logCall(ctx, h.method.hook, h.name, start, p)
		return nil, status.Error(codes.Internal, text)
	}
	out.Set(s, protoreflect.ValueOfEnum(failure))
	setMessage(out, text)
	x.logCall(ctx, h.method.hook, h.name, start, p)
	return out.Interface(), nil
}

// explain returns what callers learn of an error, and what the log does.
func (h *handler) explain(err error) (string, *problem) {
	var answer *failed
	var crash *panicked
	switch {
	case errors.As(err, &answer):
		return err.Error(), &problem{kind: kindFailure, text: err.Error()}
	case errors.Is(err, errNoAnswer):
		text := fmt.Sprintf("handler %q gave no answer: it has to return Done, Wait, Patches or an error", h.name)
		return text, &problem{kind: kindInternal, text: text}
	case errors.As(err, &crash):
		return internalError(h, crash.value), &problem{kind: kindInternal, text: err.Error(), stack: crash.stack}
	}
	return internalError(h, err), &problem{kind: kindInternal, text: err.Error()}
}

// internalError returns what callers learn of an error that was not made for them. It has the type of the error only,
// because its text may differ from call to call, or hold a secret.
func internalError(h *handler, what any) string {
	return fmt.Sprintf("handler %q: internal error (%T); search the log of the extension for the call's id",
		h.name, what)
}
