// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// TestAffectsAvailability checks that false is not absent, also with protobuf's wire format in between: Cluster API
// takes an absent member for true. Its types do not have the member yet, so the tests with random values of these miss it.
func TestAffectsAvailability(t *testing.T) {
	type answer interface {
		proto.Message
		GetAffectsAvailability() bool
	}
	c := New(catalog.New())
	for _, of := range []answer{&hooksv1alpha1.CanUpdateMachineResponse{}, &hooksv1alpha1.CanUpdateMachineSetResponse{}} {
		kind := string(of.ProtoReflect().Descriptor().Name())
		start := `{"kind":"` + kind + `","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success"`
		for name, tc := range map[string]struct{ sent, want string }{
			"False":  {`,"affectsAvailability":false}`, `,"affectsAvailability":false}`},
			"True":   {`,"affectsAvailability":true}`, `,"affectsAvailability":true}`},
			"Absent": {`}`, `}`},
			"Null":   {`,"affectsAvailability":null}`, `}`},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				read := of.ProtoReflect().New().Interface().(answer)
				if err := c.Decode([]byte(start+tc.sent), read); err != nil {
					t.Fatal(err)
				}
				if got, want := read.GetAffectsAvailability(), name == "True"; got != want {
					t.Errorf("affects_availability is %t, want %t", got, want)
				}
				wire, err := proto.Marshal(read)
				if err != nil {
					t.Fatal(err)
				}
				received := of.ProtoReflect().New().Interface()
				if err := proto.Unmarshal(wire, received); err != nil {
					t.Fatal(err)
				}
				got, err := c.Append(nil, received)
				if want := start + tc.want; err != nil || string(got) != want {
					t.Errorf("%v: written as\n%s\nwant\n%s", err, got, want)
				}
			})
		}
		t.Run(kind+"/NotABoolean", func(t *testing.T) {
			if err := c.Decode([]byte(start+`,"affectsAvailability":"false"}`), of.ProtoReflect().New().Interface()); err == nil {
				t.Error("a string was accepted")
			}
		})
	}
}
