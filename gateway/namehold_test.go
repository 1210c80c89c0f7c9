// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// A hold without a message gets one that names the handler; all that hold are named.
func TestHoldsHaveNames(t *testing.T) {
	held := func(seconds int32, message string) proto.Message {
		return &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: seconds, Message: message}
	}
	for name, tc := range map[string]struct {
		a, b, want proto.Message
	}{
		"one of two":     {held(5, ""), held(0, ""), held(5, `handler "v.a" holds, and does not say why`)},
		"both":           {held(5, ""), held(3, " "), held(3, `handler "v.a" holds, and does not say why, handler "v.b" holds, and does not say why`)},
		"one says why":   {held(5, "quota"), held(3, ""), held(3, `quota, handler "v.b" holds, and does not say why`)},
		"none":           {held(0, ""), held(0, ""), held(0, "")},
		"one refuses it": {held(5, ""), &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, RetryAfterSeconds: 5}, &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: `handler "v.b": answered Failure without a message`}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(filled(t,
				registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)),
				registrationOf("b", handlerOf("v", "BeforeClusterCreate", hook.Fail)),
			), fixedNamespaces{}, answers{"v.a": says(tc.a), "v.b": says(tc.b)})
			got, err := create(t, d, "")
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); err != nil || diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// UpdateMachine goes on, and holds nothing.
func TestWorkHasAName(t *testing.T) {
	at := &hooksv1alpha1.UpdateMachineResponse{Status: success, RetryAfterSeconds: 10}
	d := newDispatcher(filled(t, registrationOf("a", handlerOf("v", "UpdateMachine", hook.Fail))), fixedNamespaces{}, answers{"v.a": says(at)})
	got, err := d.dispatch(t.Context(), hookOf(t, "UpdateMachine"), "v.a", &hooksv1alpha1.UpdateMachineRequest{
		Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: clusterIn("n"), InfrastructureMachine: clusterIn("n")},
	})
	want := &hooksv1alpha1.UpdateMachineResponse{Status: success, RetryAfterSeconds: 10, Message: `handler "v.a" is at work`}
	if diff := cmp.Diff(proto.Message(want), got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
