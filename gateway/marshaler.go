// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/codec"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/budget"
	"github.com/hookgate/hookgate/internal/wire"
)

// marshaler is how the mux of the REST front reads and writes the mandated JSON. It only decodes bodies that the front
// has read, which are the front's own type.
type marshaler struct{ codec *codec.Codec }

var _ runtime.Marshaler = marshaler{}

// restBody is the body of a request that the front has read. The decoder takes all of it at once, so Read has no data.
type restBody struct{ *incoming }

func (restBody) Read([]byte) (int, error) { return 0, io.EOF }
func (restBody) Close() error             { return nil }

// NewDecoder returns a decoder of r, a restBody. The decoded message aliases it.
func (m marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) (err error) {
		b, ok := r.(restBody)
		if !ok {
			return fmt.Errorf("%T is not a body that the front has read", r)
		}
		if len(b.body) == 0 {
			// Not io.EOF, which grpc-gateway takes for an empty message.
			return errors.New("body is empty, want a JSON object")
		}
		msg, ok := v.(proto.Message)
		if !ok {
			return notAMessage(v)
		}
		b.complete, err = b.decode(m.codec, msg)
		b.refused = beyond(err)
		return err
	})
}

// decode decodes the body, a large one as heavy work.
func (in *incoming) decode(c *codec.Codec, m proto.Message) (complete bool, err error) {
	guard := in.guard
	if len(in.body) > budget.Step {
		if err := in.work.Step(); err != nil {
			return false, err
		}
		defer in.work.End()
		guard.Step = in.work.Step
	}
	return c.DecodeGuarded(in.body, m, guard)
}

// beyond returns the error of a request that may be right but is too much, or too late; nil for any other error.
func beyond(err error) *hook.Error {
	var refused *hook.Error
	switch {
	case err == nil:
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, codec.ErrTooMany), errors.Is(err, wire.ErrTooMany):
		return hook.Errorf(hook.TooLarge, "request %s", err)
	case errors.Is(err, context.Canceled):
		return hook.Errorf(hook.Canceled, "the caller left while its request was read").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return hook.Errorf(hook.Timeout, "the caller's deadline passed while its request was read").WithCause(err)
	}
	return nil
}

// outgoing is an answer to write, with what its call may allocate for that.
type outgoing struct {
	message proto.Message
	call    *incoming
}

// rewriteAnswer tells the marshaler, which knows no context, which call an answer is of.
func rewriteAnswer(ctx context.Context, answer proto.Message) (any, error) {
	if in := incomingFrom(ctx); in != nil {
		return outgoing{answer, in}, nil
	}
	return answer, nil
}

// Marshal returns the JSON of an answer, in a buffer of exactly its size. An answer that is larger than one may be is
// of kind BadResponse: the extension's own was not, but it grows when it is converted, merged or escaped.
func (m marshaler) Marshal(v any) ([]byte, error) {
	var guard codec.Guard
	var work *budget.Work
	if answer, ok := v.(outgoing); ok {
		v, guard, work = answer.message, answer.call.guard, answer.call.work
	}
	msg, ok := v.(proto.Message)
	if !ok {
		return nil, notAMessage(v)
	}
	body, err := m.codec.EncodeWithin(msg, MaxBodyBytes, guard)
	if errors.Is(err, codec.ErrTooLarge) {
		return nil, answerTooLarge()
	}
	if err == nil && guard.Reserve != nil && body.Size() > reserveFrom {
		err = guard.Reserve(body.Size())
	}
	if err == nil && body.Size() > budget.Step {
		err = work.Step()
		defer work.End()
	}
	if err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// answerTooLarge returns the error of an answer that has outgrown the limit on its way to the caller.
func answerTooLarge() *hook.Error {
	return hook.Errorf(hook.BadResponse, "answer is larger than %d MiB as the caller would get it", MaxBodyBytes>>20)
}

// ContentType returns application/json.
func (marshaler) ContentType(any) string { return "application/json" }

// Unmarshal decodes data. The mux does not use it for requests.
func (m marshaler) Unmarshal(data []byte, v any) error {
	return m.NewDecoder(restBody{&incoming{body: data}}).Decode(v)
}

// NewEncoder returns an encoder that writes the output of Marshal. The mux only uses it for streams.
func (m marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		text, err := m.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
}

func notAMessage(v any) error { return fmt.Errorf("%T is not a message", v) }
