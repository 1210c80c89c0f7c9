// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Answer is what a handler answers if it succeeds: Done, Wait or Patches. A nil Answer is a Failure, so that no handler
// says yes by accident.
type Answer interface {
	// fill writes the answer to an empty response of the handler's hook.
	fill(h *handler, out protoreflect.Message) error
}

// Done is the answer Success.
func Done() Answer { return done{} }

type done struct{}

func (done) fill(h *handler, out protoreflect.Message) error {
	s := statusField(out.Descriptor())
	if s == nil {
		return fmt.Errorf("%s has no status: use HandleResponse to register a handler that returns the response",
			h.method.response.Descriptor().Name())
	}
	out.Set(s, protoreflect.ValueOfEnum(success))
	return nil
}

// Wait is the answer Success that holds the caller: it asks again after d, which is rounded up to whole seconds. The
// message says to people what is waited for. A Wait of less than a second or without a message is a Failure, and so is
// one of a hook that cannot hold its caller.
func Wait(d time.Duration, message string) Answer { return wait{d, message} }

type wait struct {
	d       time.Duration
	message string
}

func (w wait) fill(h *handler, out protoreflect.Message) error {
	retry := out.Descriptor().Fields().ByName("retry_after_seconds")
	switch {
	case retry == nil:
		return Failf("handler %q: %s cannot wait: its response has no retry_after_seconds", h.name, h.method.hook)
	case w.d < time.Second:
		return Failf("handler %q: Wait of %v: want at least a second, such as Wait(30*time.Second, …)", h.name, w.d)
	case w.message == "":
		return Failf("handler %q: Wait without a message: say what the handler waits for", h.name)
	}
	seconds := min((w.d+time.Second-1)/time.Second, math.MaxInt32)
	out.Set(retry, protoreflect.ValueOfInt32(int32(seconds)))
	setMessage(out, w.message)
	return done{}.fill(h, out)
}

// Failf returns the error with which a handler answers Failure: a problem that a person must solve. Cluster API shows
// the text, and writes it into conditions, so it has to be the same each time, without addresses or times.
func Failf(format string, args ...any) error { return &failed{fmt.Sprintf(format, args...)} }

// failed is the error of Failf.
type failed struct{ message string }

func (f *failed) Error() string { return f.message }

// invalidf returns the error for a request that cannot be read, which is a mistake of the caller.
func invalidf(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

var errNoAnswer = errors.New("no answer")

func setMessage(out protoreflect.Message, text string) {
	if f := out.Descriptor().Fields().ByName("message"); f != nil && f.Kind() == protoreflect.StringKind {
		out.Set(f, protoreflect.ValueOfString(text))
	}
}
