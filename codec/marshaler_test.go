// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// held is a body that was read already, as the gateway hands it to the mux.
type held struct {
	io.Reader
	body []byte
}

func (h held) Bytes() []byte { return h.body }
func (h held) Decoded(bool)  {}

func TestMarshalerDecodes(t *testing.T) {
	const body = `{"kind":"BeforeClusterCreateRequest","cluster":{"a":1}}`
	cases := map[string]struct {
		reader io.Reader
		want   string // the error
	}{
		"Reader":    {strings.NewReader(body), ""},
		"Held":      {held{iotest.ErrReader(errors.New("is not to be read")), []byte(body)}, ""},
		"Slow":      {iotest.OneByteReader(strings.NewReader(body)), ""},
		"Empty":     {strings.NewReader(""), "body is empty, want a JSON object"},
		"HeldEmpty": {held{}, "body is empty, want a JSON object"},
		"None":      {nil, "body is empty, want a JSON object"},
		"EarlyEOF":  {iotest.ErrReader(fmt.Errorf("peer: %w", io.EOF)), "read body: peer: EOF"},
		"Broken":    {iotest.ErrReader(io.ErrUnexpectedEOF), "read body: unexpected EOF"},
		"NotJSON":   {strings.NewReader("x"), "invalid JSON at byte 0: unexpected 'x', want a value"},
	}
	m := NewMarshaler(New(catalog.New()))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := &hooksv1alpha1.BeforeClusterCreateRequest{}
			err := m.NewDecoder(tc.reader).Decode(got)
			if tc.want != "" {
				if err == nil || err.Error() != tc.want {
					t.Errorf("got error %v, want %s", err, tc.want)
				}
				if errors.Is(err, io.EOF) {
					t.Error("the error is io.EOF, which grpc-gateway takes for an empty message")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Cluster.GetRaw()) != `{"a":1}` {
				t.Errorf("got %s", got.Cluster.GetRaw())
			}
			if h, ok := tc.reader.(held); ok && !within(got.Cluster.Raw, h.body) {
				t.Error("a held body was copied")
			}
		})
	}
}

func TestMarshalerEncodes(t *testing.T) {
	c := New(catalog.New())
	m := NewMarshaler(c)
	if got := m.ContentType(nil); got != "application/json" {
		t.Errorf("content type is %s", got)
	}
	body := requestItems(4)
	msg := &hooksv1alpha1.GeneratePatchesRequest{}
	if err := m.Unmarshal(body, msg); err != nil {
		t.Fatal(err)
	}
	got, err := m.Marshal(msg)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("Marshal: %v\ngot  %s\nwant %s", err, got, body)
	}
	var out bytes.Buffer
	if err := m.NewEncoder(&out).Encode(msg); err != nil || !bytes.Equal(out.Bytes(), body) {
		t.Errorf("Encode: %v\ngot  %s\nwant %s", err, out.Bytes(), body)
	}
	if err := m.NewEncoder(&limited{room: 10}).Encode(msg); !errors.Is(err, errFull) {
		t.Errorf("Encode to a full writer: %v", err)
	}
}

func TestMarshalerTakesMessagesOnly(t *testing.T) {
	m := NewMarshaler(New(catalog.New()))
	const want = "map[string]string is not a message"
	v := map[string]string{}
	if _, err := m.Marshal(v); err == nil || err.Error() != want {
		t.Errorf("Marshal: %v", err)
	}
	if err := m.Unmarshal([]byte("{}"), v); err == nil || err.Error() != want {
		t.Errorf("Unmarshal: %v", err)
	}
	if err := m.NewEncoder(io.Discard).Encode(v); err == nil || err.Error() != want {
		t.Errorf("Encode: %v", err)
	}
	if _, err := m.Marshal(&hooksv1alpha1.DiscoveryResponse{Status: 9}); err == nil || err.Error() != "status: has no value 9" {
		t.Errorf("Marshal of what has no JSON: %v", err)
	}
	if err := m.NewEncoder(io.Discard).Encode(&hooksv1alpha1.DiscoveryResponse{Status: 9}); err == nil {
		t.Error("Encode of what has no JSON: no error")
	}
}
