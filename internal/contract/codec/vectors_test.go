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
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	golden "github.com/hookgate/hookgate/proto"
)

// TestGoldenVectors holds the two forms of each vector against each other, in both directions.
func TestGoldenVectors(t *testing.T) {
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	c := codec.New(hooks)
	for _, h := range hooks.Hooks() {
		for kind, of := range map[string]protoreflect.MessageType{"request": h.Request, "response": h.Response} {
			name := strings.ToLower(h.Hook) + "." + kind
			t.Run(name, func(t *testing.T) {
				path := filepath.Join("..", "..", "..", "proto", "testdata", golden.Directory(h.GroupVersionHook), name)
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

// The vectors say what the contract says: a message that is written by hand is that of its vector.
func TestGoldenVectorByHand(t *testing.T) {
	read := func(name string, m proto.Message) {
		t.Helper()
		binary, err := os.ReadFile(filepath.Join("..", "..", "..", "proto", "testdata", "infrastructure", "v1alpha1", name+".binpb"))
		if err != nil {
			t.Fatal(err)
		}
		if err := proto.Unmarshal(binary, m); err != nil {
			t.Fatal(err)
		}
	}
	instances := []*infrastructurev1alpha1.Instance{
		{
			Name: "vm-41", ProviderId: "acme://rack-7/vm-41", FailureDomain: "rack-7", Revision: "6b86b273ff34", Version: "v1.33.4",
			Phase: infrastructurev1alpha1.Phase_PHASE_READY, Addresses: []*infrastructurev1alpha1.MachineAddress{
				{Type: "InternalIP", Address: "10.0.0.41"}, {Type: "Hostname", Address: "worker-x7k2p"},
			},
		},
		{
			Name: "vm-42", Revision: "6b86b273ff34", Version: "v1.33.4", Phase: infrastructurev1alpha1.Phase_PHASE_FAILED,
			Reason: "InsufficientCapacity",
		},
	}
	pool := &infrastructurev1alpha1.ReconcileMachinePoolResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: "grüß dich, \"world\" <&>", RetryAfterSeconds: 10,
		Phase: infrastructurev1alpha1.Phase_PHASE_PROVISIONING, Instances: instances, InstanceCount: proto.Int32(2),
		ProviderId: "acme://rack-7/group-9",
		Conditions: []*infrastructurev1alpha1.Condition{
			{Type: "LoadBalancerReady", Status: "True", Reason: "Created"},
			{Type: "NetworkReady", Status: "Unknown", Reason: "QuotaExceeded", Message: "grüß dich, \"world\" <&>"},
		},
	}
	got := &infrastructurev1alpha1.ReconcileMachinePoolResponse{}
	if read("reconcilemachinepool.response", got); !proto.Equal(got, pool) {
		t.Errorf("got %v, want %v", got, pool)
	}
	gone := &infrastructurev1alpha1.DeleteClusterResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: "grüß dich, \"world\" <&>",
		State: infrastructurev1alpha1.DeletionState_DELETION_STATE_GONE,
	}
	deleted := &infrastructurev1alpha1.DeleteClusterResponse{}
	if read("deletecluster.response", deleted); !proto.Equal(deleted, gone) {
		t.Errorf("got %v, want %v", deleted, gone)
	}
}

func TestGoldenRequest(t *testing.T) {
	for _, gvh := range []hook.GroupVersionHook{
		{Group: hook.Group, Version: hook.Version, Hook: "UpdateMachine"},
		{Group: hook.InfrastructureGroup, Version: hook.InfrastructureVersion, Hook: "ReconcileMachine"},
	} {
		if want := `{"kind":"` + gvh.Hook + `Request","apiVersion":"` + gvh.Group; !bytes.HasPrefix(golden.Request(gvh), []byte(want)) {
			t.Errorf("the request of %s does not begin with %s", gvh, want)
		}
	}
	for _, none := range []hook.GroupVersionHook{
		{Group: hook.Group, Version: hook.Version, Hook: "ReconcileMachine"}, {Group: hook.InfrastructureGroup, Version: "v1", Hook: "ReconcileMachine"},
	} {
		if got := golden.Request(none); got != nil {
			t.Errorf("there is a request of %s: %s", none, got)
		}
	}
}
