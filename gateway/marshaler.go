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
		b.complete, err = m.codec.DecodeGuarded(b.body, msg, b.guard)
		b.refused = beyond(err)
		return err
	})
}

// beyond returns the error of a body that is right but too much; nil for any other error, which the mux passes on as
// text.
func beyond(err error) *hook.Error {
	var refused *hook.Error
	switch {
	case err == nil:
	case errors.As(err, &refused):
		return refused
	case errors.Is(err, codec.ErrTooMany):
		return hook.Errorf(hook.TooLarge, "request %s", err)
	case errors.Is(err, context.Canceled):
		return hook.Errorf(hook.Canceled, "the caller left while its request was read").WithCause(err)
	case errors.Is(err, context.DeadlineExceeded):
		return hook.Errorf(hook.Timeout, "the caller's deadline passed while its request was read").WithCause(err)
	}
	return nil
}

// Marshal returns the JSON of a message, in a buffer of exactly its size.
func (m marshaler) Marshal(v any) ([]byte, error) {
	msg, ok := v.(proto.Message)
	if !ok {
		return nil, notAMessage(v)
	}
	body, err := m.codec.Encode(msg)
	if err != nil {
		return nil, err
	}
	return body.Bytes(), nil
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
