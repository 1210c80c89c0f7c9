// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

type inPlace struct {
	hooksv1alpha1.UnimplementedInPlaceUpdateHooksServiceServer
	affects *bool
}

func (s *inPlace) CanUpdateMachine(context.Context, *hooksv1alpha1.CanUpdateMachineRequest) (*hooksv1alpha1.CanUpdateMachineResponse, error) {
	return &hooksv1alpha1.CanUpdateMachineResponse{Status: success, AffectsAvailability: s.affects}, nil
}

// TestAffectsAvailability checks that false and absent come out as they went in, for callers and extensions over either
// protocol.
func TestAffectsAvailability(t *testing.T) {
	const start = `{"kind":"CanUpdateMachineResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success"`
	const machine = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"default"}}`
	objects := &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: &hooksv1alpha1.RawExtension{Raw: []byte(machine)}}
	for name, tc := range map[string]struct {
		affects *bool
		json    string
	}{
		"False": {new(false), `,"affectsAvailability":false}`}, "True": {new(true), `,"affectsAvailability":true}`}, "Absent": {nil, `}`},
	} {
		for south, register := range map[string]func(*fixture){
			"REST": func(f *fixture) {
				f.register(t, "CanUpdateMachine", hook.Fail, 30*time.Second, func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, start+tc.json)
				})
			},
			"GRPC": func(f *fixture) {
				f.registerGRPC(t, func(s *grpc.Server) {
					hooksv1alpha1.RegisterInPlaceUpdateHooksServiceServer(s, &inPlace{affects: tc.affects})
				}, handlerOf("v", "CanUpdateMachine", hook.Fail))
			},
		} {
			t.Run(name+"/"+south, func(t *testing.T) {
				f := newFixture(t, nil)
				register(f)
				answer := f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/canupdatemachine",
					`{"current":{"machine":`+machine+`},"desired":{"machine":`+machine+`}}`)
				if want := start + tc.json; string(answer.body) != want {
					t.Errorf("over REST:\n%s\nwant\n%s", answer.body, want)
				}
				message, err := hooksv1alpha1.NewInPlaceUpdateHooksServiceClient(f.conn).CanUpdateMachine(t.Context(),
					&hooksv1alpha1.CanUpdateMachineRequest{Current: objects, Desired: objects})
				if err != nil {
					t.Fatal(err)
				}
				if got := message.AffectsAvailability; (got == nil) != (tc.affects == nil) || message.GetAffectsAvailability() != (name == "True") {
					t.Errorf("over gRPC: %v", got)
				}
			})
		}
	}
}
