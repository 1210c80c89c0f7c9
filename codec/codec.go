// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codec reads and writes the JSON of the API group hooks.runtime.cluster.x-k8s.io: what encoding/json writes for the
// Go types of Cluster API, byte for byte, from and to the generated messages of the contract. It is not protojson. Each
// version of a hook has messages of its own, and they say its apiVersion.
//
// Kubernetes objects (RawExtension) and free values (JSON) are validated but never parsed: decoding leaves them where
// they are in the body, encoding hands them on verbatim. Members that the schema does not know are kept in the field
// unknown_members of their level, and written after the known ones, by name.
//
// It leaves to others: reading and capping bodies, what an answer's status means, the conversion of embedded objects,
// and which kind of hook.Error a wrong body is (a request's and an answer's differ).
//
// A Codec and a Marshaler are immutable and safe for concurrent use. A message belongs to one goroutine while it is
// decoded; any number may encode it at the same time while none changes it.
package codec

import (
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/jsonscan"
)

// Codec translates between the mandated JSON and the messages of the contract. Make one with New.
type Codec struct {
	tables map[reflect.Type]*table // by the messages' Go struct types
}

// New returns a codec for the requests and answers of all hooks of the catalog, and all messages within them.
//
// It panics if a message has a field that the JSON of the contract has no form for, which only a change of the
// contract can bring about.
func New(c *catalog.Catalog) *Codec {
	b := newBuilder()
	for _, h := range c.Hooks() {
		b.envelope(h.Request, h.APIVersion())
		b.envelope(h.Response, h.APIVersion())
	}
	return &Codec{tables: b.tables}
}

// Decode reads body, one JSON object with nothing but white space after it, into m, which must be a fresh message.
//
// Fields of type RawExtension and JSON alias body: neither may be changed as long as the other is used. Everything
// else is copied. If Decode fails, m is of no use.
//
// Members are matched exactly, in upper and lower case; others become unknown_members. An explicit null is the same as
// an absent member, as it is for encoding/json; only a list that is always written remembers it. The members
// kind and apiVersion of a request or answer may be absent, null or empty, but not wrong. Refused are also: a member
// that stands twice in one object of the envelope, null in a list, an enum's string that is not one of the
// contract's, text that is not UTF-8, half of a surrogate pair in a string of the envelope, and nesting deeper than
// 1,000. The objects within RawExtension and JSON only need to be valid JSON.
//
// The error is an *Error, unless m is no message of the catalog.
func (c *Codec) Decode(body []byte, m proto.Message) error {
	_, err := c.DecodeComplete(body, m)
	return err
}

// DecodeComplete is Decode, and tells whether body says its kind and apiVersion. If so, and if m stays as it is, body is a
// JSON of m that may go on without being encoded anew.
func (c *Codec) DecodeComplete(body []byte, m proto.Message) (bool, error) {
	t, rv, err := c.table(m)
	if err != nil {
		return false, err
	}
	d := decoder{Scanner: jsonscan.Scanner{Text: body}}
	if err := d.document(t, rv); err != nil {
		return false, asError(err)
	}
	return d.meta == 2, nil
}

// Encode returns the JSON of m without copying its large raw objects: the segments of the Body alias them, so they must
// not be changed while the Body is used. Messages that did not come from Decode should pass Check first: Encode does
// not look into raw objects.
//
// The error is an *Error that names the member, unless m is no message of the catalog.
func (c *Codec) Encode(m proto.Message) (Body, error) {
	t, rv, err := c.table(m)
	if err != nil {
		return Body{}, err
	}
	e := encoder{split: true, buf: make([]byte, 0, firstChunk)}
	if err := e.message(t, rv); err != nil {
		return Body{}, err
	}
	return e.body(), nil
}

// Append appends the JSON of m to dst, raw objects included. Errors are those of Encode.
func (c *Codec) Append(dst []byte, m proto.Message) ([]byte, error) {
	t, rv, err := c.table(m)
	if err != nil {
		return dst, err
	}
	e := encoder{buf: dst}
	if err := e.message(t, rv); err != nil {
		return dst, err
	}
	return e.buf, nil
}

// Check tells whether m, a message that came from a gRPC peer, can be written as JSON: every RawExtension and JSON that
// is not empty holds one valid JSON value in UTF-8, no unknown member has the name of a known one, and enums have
// values of the contract. Messages from Decode need no Check.
//
// The error is an *Error that names the member, unless m is no message of the catalog.
func (c *Codec) Check(m proto.Message) error {
	t, rv, err := c.table(m)
	if err != nil {
		return err
	}
	return checkMessage(t, rv)
}

// table returns the table of m's type, and its struct.
func (c *Codec) table(m proto.Message) (*table, reflect.Value, error) {
	rv := reflect.ValueOf(m)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return nil, reflect.Value{}, fmt.Errorf("message %T is nil", m)
	}
	t, ok := c.tables[rv.Type().Elem()]
	if !ok {
		return nil, reflect.Value{}, fmt.Errorf("message %T is not in the catalog", m)
	}
	return t, rv.Elem(), nil
}
