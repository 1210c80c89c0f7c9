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

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/budget"
)

// marshaler is how the mux of the REST front writes the mandated JSON. It reads none: the body of a request is decoded
// when it is known who reads the message.
type marshaler struct{ codec *codec.Codec }

var _ runtime.Marshaler = marshaler{}

// NewDecoder returns a decoder that leaves messages as they are: the call has the body.
func (marshaler) NewDecoder(io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(any) error { return nil })
}

// outgoing is an answer to write, with what its call may allocate for that.
type outgoing struct {
	message proto.Message
	call    *call
}

// rewriteAnswer tells the marshaler, which knows no context, which call an answer is of.
func rewriteAnswer(ctx context.Context, answer proto.Message) (any, error) {
	if in := callFrom(ctx); in != nil {
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
		v, guard, work = answer.message, answer.call.guard, &answer.call.work
	}
	msg, ok := v.(proto.Message)
	if !ok {
		return nil, notAMessage(v)
	}
	body, err := m.codec.EncodeWithin(msg, BodyBytes, guard)
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
	return hook.Errorf(hook.BadResponse, "answer, encoded for the caller, is larger than %d MiB", BodyBytes>>20)
}

// ContentType returns application/json.
func (marshaler) ContentType(any) string { return "application/json" }

// Unmarshal decodes data. The mux does not use it for requests.
func (m marshaler) Unmarshal(data []byte, v any) error {
	msg, ok := v.(proto.Message)
	if !ok {
		return notAMessage(v)
	}
	return m.codec.Decode(data, msg)
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
