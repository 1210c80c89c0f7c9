// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codec reads and writes the JSON of the API group hooks.runtime.cluster.x-k8s.io, from and to the generated
// messages of the contract. It writes the same bytes as encoding/json for the Go types of Cluster API, which is not
// protojson. Each version of a hook has messages of its own, from which its apiVersion follows.
//
// Kubernetes objects (RawExtension) and free values (JSON) are validated but not parsed: a decoded message refers to
// them in the body, and they are encoded verbatim. Members that the schema does not know are kept in the field
// unknown_members of their level and written after the known ones, in the order of their names.
//
// The package does not read or limit bodies, interpret the status of an answer, or convert embedded objects. Its errors
// are not classified as hook.Error: the kind of the same error differs between a request and an answer.
//
// A Codec is immutable and safe for concurrent use. Several goroutines may encode a message at the same time as long as
// none changes it.
package codec

import (
	"fmt"
	"math"
	"reflect"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// Codec translates between the mandated JSON and the messages of the contract. Use New.
type Codec struct {
	tables map[reflect.Type]*table // by the messages' Go struct types
}

// New returns a Codec for the requests and answers of all hooks in the catalog, and all messages within them. It
// panics if a message has a field without a form in JSON, which only a change of the contract can cause.
func New(c *catalog.Catalog) *Codec {
	b := newBuilder()
	for _, h := range c.Hooks() {
		b.envelope(h.Request, h.APIVersion()).request = true
		b.envelope(h.Response, h.APIVersion())
	}
	return &Codec{tables: b.tables}
}

// Decode reads body, one JSON object, into m, which must be an empty message. Only white space may follow the object.
//
// Fields of type RawExtension and JSON alias body: neither may change as long as the other is in use. Everything else
// is copied. After an error, the content of m is undefined.
//
// Members that the schema does not know become unknown_members. As for encoding/json, a member of an answer whose name
// differs from a known one's only in case is that member, and is written under the known name; and an explicit null is
// the same as an absent member, except that null is written again for a list that is always written. The members kind
// and apiVersion of a request or answer may be absent, null or empty, but not wrong. All this is true of the schemas of
// variables, too; keys of maps, and what else is in a RawExtension or JSON, are case-sensitive.
//
// Decode also refuses two members of one object of the envelope whose names are the same in any case, in a request also
// one whose name differs from a known one's only in case, null in a list, a string that is not a value of its enum,
// text that is not UTF-8, half of a surrogate pair in a string of the envelope, and nesting deeper than 1,000 levels.
// Other values of RawExtension and JSON only have to be valid JSON. A body may have at most limits.Elements elements:
// of lists and maps, and members that the schema does not know.
//
// The error is an *Error, unless m is not a message of the catalog.
func (c *Codec) Decode(body []byte, m proto.Message) error {
	_, err := c.DecodeGuarded(body, m, Guard{})
	return err
}

// DecodeGuarded is like Decode, under a Guard, and also reports whether body states its kind and apiVersion, and no
// name of a member in another case. If so, body can be sent on for m, without encoding it again, as long as m does not
// change. The error may also be one of the Guard.
func (c *Codec) DecodeGuarded(body []byte, m proto.Message, g Guard) (complete bool, err error) {
	o, err := c.decode(body, m, g, partial{})
	return o.Complete, err
}

func (c *Codec) decode(body []byte, m proto.Message, g Guard, o partial) (Partial, error) {
	t, msg, err := c.table(m)
	if err != nil {
		return Partial{}, err
	}
	d := decoder{
		Scanner: jsonscan.Scanner{Text: body, Step: g.Step}, meter: meter{reserve: g.Reserve}, request: t.request,
		speller: speller{misspelt: g.Misspelt}, partial: o,
	}
	if err := d.document(t, msg); err != nil {
		return Partial{}, asError(err)
	}
	found := Partial{Complete: d.meta == 2 && !d.folded, Skipped: d.partial.skipped, Namespaces: d.partial.namespaces}
	if found.Skipped {
		found.Elements = d.partial.elements
	}
	return found, nil
}

// Encode returns the JSON of m. The Body aliases large raw objects of m, which must not change while it is in use.
// Encode does not look into raw objects; call Check first for messages that do not come from Decode.
//
// The error is an *Error that names the member, unless m is not a message of the catalog.
func (c *Codec) Encode(m proto.Message) (Body, error) {
	return c.EncodeWithin(m, math.MaxInt64, Guard{})
}

// EncodeWithin is like Encode, under a Guard, whose Step is not used, and returns ErrTooLarge if the JSON has more
// than most bytes, before that many are written. What the Guard reserves are the bytes that the Body does not alias.
// The error may also be one of the Guard.
func (c *Codec) EncodeWithin(m proto.Message, most int64, g Guard) (Body, error) {
	t, msg, err := c.table(m)
	if err != nil {
		return Body{}, err
	}
	e := encoder{split: true, buf: make([]byte, 0, firstChunk), guard: g, max: most}
	if err := e.message(t, msg); err != nil {
		return Body{}, err
	}
	return e.body()
}

// Append appends the JSON of m to dst, including raw objects. It returns the same errors as Encode.
func (c *Codec) Append(dst []byte, m proto.Message) ([]byte, error) {
	t, msg, err := c.table(m)
	if err != nil {
		return dst, err
	}
	e := encoder{buf: dst, from: len(dst), checked: len(dst), max: math.MaxInt64}
	if err := e.message(t, msg); err != nil {
		return dst, err
	}
	return e.buf, nil
}

// Check returns an error unless m, a message from a gRPC peer, can be written as JSON that can be read in one way:
// every RawExtension and JSON that is not empty has to hold one JSON value in UTF-8, no unknown member may have the
// name of a known one, or of another one, in any case, and enums must have values of the contract. Members of schemas
// of variables get the names that Cluster API knows them by, as Decode gives them. Messages from Decode need no Check.
//
// The error is an *Error that names the member, unless m is not a message of the catalog.
func (c *Codec) Check(m proto.Message) error { return c.CheckGuarded(m, Guard{}) }

// CheckGuarded is like Check, under a Guard. The error may also be one of the Guard.
func (c *Codec) CheckGuarded(m proto.Message, g Guard) error {
	t, msg, err := c.table(m)
	if err != nil {
		return err
	}
	k := checker{step: g.Step, meter: meter{reserve: g.Reserve}, speller: speller{misspelt: g.Misspelt}}
	return k.message(t, msg)
}

// table returns the table of m's type and the struct that m points to.
func (c *Codec) table(m proto.Message) (*table, message, error) {
	rv := reflect.ValueOf(m)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return nil, message{}, fmt.Errorf("message %T is nil", m)
	}
	t, ok := c.tables[rv.Type().Elem()]
	if !ok {
		return nil, message{}, fmt.Errorf("message %T is not in the catalog", m)
	}
	return t, messageOf(rv), nil
}
