// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"fmt"
	"io"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"
)

// Marshaler lets grpc-gateway's mux speak the mandated JSON. It handles the messages of the catalog and nothing else. It
// is safe for concurrent use.
type Marshaler struct {
	codec *Codec
}

var _ runtime.Marshaler = (*Marshaler)(nil)

// NewMarshaler returns a marshaler that uses c.
func NewMarshaler(c *Codec) *Marshaler { return &Marshaler{codec: c} }

// ContentType returns application/json.
func (m *Marshaler) ContentType(any) string { return "application/json" }

// Marshal returns the JSON of a message, in a buffer of exactly its size.
func (m *Marshaler) Marshal(v any) ([]byte, error) {
	msg, ok := v.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("%T is not a message", v)
	}
	body, err := m.codec.Encode(msg)
	if err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// Unmarshal is Codec.Decode: the message's raw fields alias data.
func (m *Marshaler) Unmarshal(data []byte, v any) error {
	msg, ok := v.(proto.Message)
	if !ok {
		return fmt.Errorf("%T is not a message", v)
	}
	if len(data) == 0 {
		return &Error{Message: "body is empty, want a JSON object"}
	}
	return m.codec.Decode(data, msg)
}

// Held is a body that is in memory already. A decoder takes its bytes without a copy, and tells it whether they are a
// complete message: see Codec.DecodeComplete.
type Held interface {
	Bytes() []byte
	Decoded(complete bool)
}

// NewDecoder returns a decoder of one message, the whole of r. Where r is Held, the message's raw fields alias its bytes
// and r is not read; otherwise r is read to its end.
//
// The error of an empty body is not io.EOF, which grpc-gateway would take for an empty message.
func (m *Marshaler) NewDecoder(r io.Reader) runtime.Decoder {
	return runtime.DecoderFunc(func(v any) error {
		if r == nil {
			return m.Unmarshal(nil, v)
		}
		if held, ok := r.(Held); ok {
			return m.decodeHeld(held, v)
		}
		data, err := io.ReadAll(r)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("read body: " + err.Error()) // not wrapped: see above
		case err != nil:
			return fmt.Errorf("read body: %w", err)
		}
		return m.Unmarshal(data, v)
	})
}

func (m *Marshaler) decodeHeld(held Held, v any) error {
	msg, ok := v.(proto.Message)
	data := held.Bytes()
	if !ok || len(data) == 0 {
		return m.Unmarshal(data, v)
	}
	complete, err := m.codec.DecodeComplete(data, msg)
	held.Decoded(complete)
	return err
}

// NewEncoder returns an encoder that writes one message to w per call, large raw objects without a copy.
func (m *Marshaler) NewEncoder(w io.Writer) runtime.Encoder {
	return runtime.EncoderFunc(func(v any) error {
		msg, ok := v.(proto.Message)
		if !ok {
			return fmt.Errorf("%T is not a message", v)
		}
		body, err := m.codec.Encode(msg)
		if err != nil {
			return err
		}
		_, err = (&bodyReader{segments: body.segments}).WriteTo(w)
		return err
	})
}
