// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
)

// TestGoldenVectors holds the two forms of each vector against each other, in both directions.
func TestGoldenVectors(t *testing.T) {
	hooks := catalog.New()
	c := codec.New(hooks)
	for _, h := range hooks.Hooks() {
		for kind, of := range map[string]protoreflect.MessageType{"request": h.Request, "response": h.Response} {
			name := strings.ToLower(h.Hook) + "." + kind
			t.Run(name, func(t *testing.T) {
				path := filepath.Join("..", "proto", "testdata", h.Version, name)
				text, err := os.ReadFile(path + ".json")
				if err != nil {
					t.Fatal(err)
				}
				binary, err := os.ReadFile(path + ".binpb")
				if err != nil {
					t.Fatal(err)
				}
				fromJSON, fromBinary := of.New().Interface(), of.New().Interface()
				if err := c.Decode(text, fromJSON); err != nil {
					t.Fatal(err)
				}
				if err := proto.Unmarshal(binary, fromBinary); err != nil {
					t.Fatal(err)
				}
				if !proto.Equal(fromJSON, fromBinary) {
					t.Errorf("the JSON is %v, and the message %v", fromJSON, fromBinary)
				}
				if len(fromBinary.ProtoReflect().GetUnknown()) > 0 {
					t.Error("the message has fields that the contract does not know")
				}
				again, err := c.Append(nil, fromBinary)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(again, text) {
					t.Errorf("the message is written as\n%s\nwant\n%s", again, text)
				}
			})
		}
	}
}
