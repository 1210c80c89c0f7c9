// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/internal/contract/codec"
	v1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
)

// Lists of strings and plain booleans, which Cluster API's hooks do not have today, have their form in JSON.
func TestJSONOfStringListsAndBooleans(t *testing.T) {
	c := codec.New(New())
	const head = `{"kind":"BeforeNodeDrainRequest","apiVersion":"hooks.test.hookgate.dev/v1"`
	for text, tc := range map[string]struct {
		want  *v1.BeforeNodeDrainRequest
		again string // what is written for want, if it is not text
		err   string
	}{
		head + `,"tags":["a","ü\"",""],"forced":true}`: {
			want: &v1.BeforeNodeDrainRequest{Tags: []string{"a", `ü"`, ""}, Forced: true},
		},
		head + `,"tags":[ "a" , "b" ] }`: {
			want: &v1.BeforeNodeDrainRequest{Tags: []string{"a", "b"}}, again: head + `,"tags":["a","b"]}`,
		},
		head + `,"tags":[ ],"forced":false}`: {want: &v1.BeforeNodeDrainRequest{}, again: head + `}`},
		head + `,"tags":null,"forced":null}`: {want: &v1.BeforeNodeDrainRequest{}, again: head + `}`},
		head + `,"tags":["a",1]}`:            {err: `tags[1]: want a string, got a number`},
		head + `,"tags":["a",null]}`:         {err: `tags[1]: want a string, got null`},
		head + `,"tags":["a",]}`:             {err: `want a value`},
		head + `,"tags":["a" "b"]}`:          {err: `want ',' or ']'`},
		head + `,"tags":{}}`:                 {err: `tags: want an array`},
		head + `,"tags":["a"`:                {err: `JSON ends early`},
		head + `,"tags":[`:                   {err: `JSON ends early`},
		head + `,"forced":"true"}`:           {err: `forced: want true or false`},
	} {
		got := &v1.BeforeNodeDrainRequest{}
		err := c.Decode([]byte(text), got)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: got %v, want %s", text, err, tc.err)
			}
			continue
		}
		if diff := cmp.Diff(tc.want, got, protocmp.Transform()); err != nil || diff != "" {
			t.Errorf("%s: %v %s", text, err, diff)
			continue
		}
		again, err := c.Append(nil, got)
		if tc.again == "" {
			tc.again = text
		}
		if err != nil || string(again) != tc.again {
			t.Errorf("%s: written as %s, %v", text, again, err)
		}
	}
}

// The messages of every version go through JSON unchanged.
func TestJSONRoundTrips(t *testing.T) {
	for _, p := range pairs() {
		if p.from.Singleton() {
			continue // what a gRPC extension states of its handlers has no form in JSON
		}
		for seed := range uint64(100) {
			before := p.random(rand.New(rand.NewPCG(seed, 3)))
			if field := before.ProtoReflect().Descriptor().Fields().ByName("handler"); field != nil {
				before.ProtoReflect().Clear(field) // the path has it
			}
			text, err := p.codec.Append(nil, before)
			if err != nil {
				t.Fatal(err)
			}
			after := before.ProtoReflect().New().Interface()
			if err := p.codec.Decode(text, after); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if !proto.Equal(before, after) {
				t.Fatalf("%s: %s\n%s", p.name, text, cmp.Diff(before, after, protocmp.Transform()))
			}
		}
	}
}
