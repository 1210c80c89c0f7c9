// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	_ "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1" // its messages have vectors
	_ "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"       // as do these
)

// TestVectors reads the requests and answers of all hooks, whose messages the gateway's codec has made.
func TestVectors(t *testing.T) {
	read := 0
	for folder, pkg := range map[string]string{
		"v1alpha1": "hookgate.hooks.v1alpha1", "infrastructure/v1alpha1": "hookgate.infrastructure.v1alpha1",
		"machines/v1alpha1": "hookgate.machines.v1alpha1",
	} {
		protoregistry.GlobalTypes.RangeMessages(func(m protoreflect.MessageType) bool {
			name := string(m.Descriptor().Name())
			for _, kind := range []string{"Request", "Response"} {
				hook, ok := strings.CutSuffix(name, kind)
				path := filepath.Join("../../../proto/testdata", folder, strings.ToLower(hook+"."+kind))
				text, err := os.ReadFile(path + ".json")
				if !ok || string(m.Descriptor().ParentFile().Package()) != pkg || os.IsNotExist(err) {
					continue
				}
				binary, binaryErr := os.ReadFile(path + ".binpb")
				if err != nil || binaryErr != nil {
					t.Fatal(err, binaryErr)
				}
				got, want := m.New().Interface(), m.New().Interface()
				if err := proto.Unmarshal(binary, want); err != nil {
					t.Fatal(err)
				}
				if err := Decode(text, got); err != nil {
					t.Errorf("%s: %v", path, err)
				} else if !proto.Equal(got, want) {
					t.Errorf("%s is read as\n%v\nwant\n%v", path, got, want)
				}
				read++
			}
			return true
		})
	}
	files, err := filepath.Glob("../../../proto/testdata/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../../../proto/testdata/*/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if want := len(files) + len(deeper); read != want || read == 0 {
		t.Errorf("read %d of %d vectors", read, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                     "want a JSON object",
		`null`:                                   "want a JSON object",
		`{"kind": "BeforeClusterCreateRequest"}`: `kind: want GeneratePatchesRequest, got "BeforeClusterCreateRequest"`,
		`{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha2"}`: `apiVersion: want hooks.runtime.cluster.x-k8s.io/v1alpha1, got "hooks.runtime.cluster.x-k8s.io/v1alpha2"`,
		`{"kind": "MyGeneratePatchesRequest"}`:                      `kind: want GeneratePatchesRequest, got "MyGeneratePatchesRequest"`,
		`{"items": [{"UID": "a"}]}`:                                 `items: [0]: UID: differs from "uid" only in case`,
		`{"apiVersion": 1}`:                                         "apiVersion: want hooks.runtime.cluster.x-k8s.io/v1alpha1, got 1",
		`{"items": {}}`:                                             "items: want a list",
		`{"items": [1]}`:                                            "items: [0]: want a JSON object",
		`{"settings": {"a": 1}}`:                                    "invalid value for string field value: 1",
		`{"items": [{"uid": 1}]}`:                                   "invalid value for string field uid: 1",
		`{"items": [{"holderReference": {"apiVersion": ["a"]}}]}`:   "invalid value for string field apiVersion",
		`{"items": [{"holderReference": "a"}]}`:                     "items: [0]: holderReference: want a JSON object",
	} {
		if err := Decode([]byte(text), &hooks.GeneratePatchesRequest{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"status": "success"}`:     `status: want one of Success, Failure, got "success"`,
		`{"status": "Unspecified"}`: `status: want one of Success, Failure, got "Unspecified"`,
		`{"status": 1}`:             "status: want a text",
	} {
		if err := Decode([]byte(text), &hooks.GeneratePatchesResponse{}); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

// What is JSON within a message stays as it is written, and what the contract does not know is kept.
func TestDecodeKeeps(t *testing.T) {
	in := &hooks.BeforeClusterCreateRequest{}
	text := `{"kind": "", "cluster": {"n": 9007199254740993,  "z": null}, "settings": null, "later": [1.0], "handler": "a"}`
	if err := Decode([]byte(text), in); err != nil {
		t.Fatal(err)
	}
	if got := string(in.GetCluster().GetRaw()); got != `{"n": 9007199254740993,  "z": null}` {
		t.Errorf("cluster is %s", got)
	}
	if got := string(in.GetUnknownMembers()["later"].GetRaw()); got != `[1.0]` || len(in.GetUnknownMembers()) != 2 || in.Settings != nil || in.GetHandler() != "" {
		t.Errorf("read %v", in)
	}
}
