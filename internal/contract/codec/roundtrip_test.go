// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
)

// underRace reports whether the race detector is on. Code that has one goroutine has no races, and is ten times as slow.
var underRace bool

// rounds is how many random values each message gets.
func rounds() int {
	if testing.Short() || underRace {
		return 100
	}
	return 1000
}

// seedOf gives every message values of its own.
func seedOf(name string) int64 {
	h := fnv.New32()
	_, _ = io.WriteString(h, name)
	return int64(h.Sum32())
}

// TestRoundTrip checks that the codec's JSON is Cluster API's: the JSON of its types survives the codec byte for byte,
// also with protobuf's wire format in between.
func TestRoundTrip(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(e.name)
			s := newSource(seed)
			for range rounds() {
				body := marshal(s.envelope(e))
				m := e.message.New().Interface()
				if err := c.Decode(body, m); err != nil {
					failf(t, seed, body, "decode: %v", err)
				}
				again, err := c.Append(nil, m)
				if err != nil {
					failf(t, seed, body, "append: %v", err)
				}
				if !bytes.Equal(body, again) {
					failf(t, seed, body, "came out as\n      %s", again)
				}
				encoded, err := c.Encode(m)
				if err != nil {
					failf(t, seed, body, "encode: %v", err)
				}
				if got := encoded.Bytes(); !bytes.Equal(body, got) || encoded.Size() != int64(len(got)) {
					failf(t, seed, body, "encoded as %d bytes\n      %s", encoded.Size(), got)
				}
				wire, err := proto.Marshal(m)
				if err != nil {
					failf(t, seed, body, "protobuf: %v", err)
				}
				received := e.message.New().Interface()
				if err := proto.Unmarshal(wire, received); err != nil {
					failf(t, seed, body, "protobuf: %v", err)
				}
				if err := c.Check(received); err != nil {
					failf(t, seed, body, "check: %v", err)
				}
				again, err = c.Append(again[:0], received)
				if err != nil || !bytes.Equal(body, again) {
					failf(t, seed, body, "came out of protobuf (error %v) as\n      %s", err, again)
				}
			}
		})
	}
}

// TestUnknownMembersSurvive adds members that the schema does not know at every level of random envelopes.
func TestUnknownMembersSurvive(t *testing.T) {
	c := New(catalog.New())
	for _, e := range envelopes(t) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(e.name) + 1
			s := newSource(seed)
			tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
			for range rounds() / 2 {
				tree := parse(t, marshal(s.envelope(e)))
				inject(s, tab, tree.(map[string]any))
				body := marshal(tree)
				m := e.message.New().Interface()
				if err := c.Decode(body, m); err != nil {
					failf(t, seed, body, "decode: %v", err)
				}
				wire, err := proto.Marshal(m)
				if err != nil {
					failf(t, seed, body, "protobuf: %v", err)
				}
				received := e.message.New().Interface()
				if err := proto.Unmarshal(wire, received); err != nil {
					failf(t, seed, body, "protobuf: %v", err)
				}
				if err := c.Check(received); err != nil {
					failf(t, seed, body, "check: %v", err)
				}
				again, err := c.Append(nil, received)
				if err != nil {
					failf(t, seed, body, "append: %v", err)
				}
				if diff := cmp.Diff(parse(t, body), parse(t, again)); diff != "" {
					failf(t, seed, body, "changed (-sent +got):\n%s", diff)
				}
			}
		})
	}
}

// inject adds unknown members to an object of the envelope and to those within it.
func inject(s *source, tab *table, object map[string]any) {
	for i := range tab.fields {
		f := &tab.fields[i]
		switch f.shape {
		case shapeMessage:
			if inner, ok := object[f.name].(map[string]any); ok {
				inject(s, f.message, inner)
			}
		case shapeList:
			list, _ := object[f.name].([]any)
			for _, inner := range list {
				inject(s, f.message, inner.(map[string]any))
			}
		}
	}
	for _, name := range []string{"aNew", "kinds", "handler", "unknownMembers", "unknown_members", "zz\n\"<", "", "名"} {
		if s.Intn(3) == 0 {
			object[name] = s.value(2)
			if s.Intn(6) == 0 {
				object[name] = nil
			}
		}
	}
}

// parse reads JSON without losing digits.
func parse(t testing.TB, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// TestInjectReachesEveryLevel checks the test above: over all rounds, every table had unknown members.
func TestInjectReachesEveryLevel(t *testing.T) {
	c := New(catalog.New())
	missing := map[string]bool{}
	for _, tab := range c.tables {
		missing[tab.name] = true
	}
	for _, e := range envelopes(t) {
		s := newSource(1)
		tab := c.tables[reflect.TypeOf(e.message.Zero().Interface()).Elem()]
		for range 50 {
			tree := parse(t, marshal(s.envelope(e)))
			inject(s, tab, tree.(map[string]any))
			m := e.message.New().Interface()
			if err := c.Decode(marshal(tree), m); err != nil {
				t.Fatal(err)
			}
			haveUnknown(tab, messageOf(reflect.ValueOf(m)), missing)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no unknown members were ever in %v", slices.Sorted(maps.Keys(missing)))
	}
}

func haveUnknown(tab *table, m message, missing map[string]bool) {
	if len(*tab.unknownOf(m)) > 1 {
		delete(missing, tab.name)
	}
	for i := range tab.fields {
		f := &tab.fields[i]
		switch f.shape {
		case shapeMessage:
			if inner := m.child(f); !inner.isNil() {
				haveUnknown(f.message, inner, missing)
			}
		case shapeList:
			for _, inner := range m.children(f) {
				haveUnknown(f.message, inner, missing)
			}
		}
	}
}
