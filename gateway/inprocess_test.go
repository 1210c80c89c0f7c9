// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

func machineWith(label string) *machinesv1alpha1.BeforeMachineDrainRequest {
	return &machinesv1alpha1.BeforeMachineDrainRequest{Machine: &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil,
		`{"kind":"Machine","metadata":{"name":"m","namespace":"red","labels":{"tier":%q}},"spec":{"clusterName":"c"}}`, label)}}
}

// TestTargetsAreWhomCallCalls compares the handlers that Targets names with those that Call calls, for Machines that
// policies select by their labels and by a condition.
func TestTargetsAreWhomCallCalls(t *testing.T) {
	const drain = "BeforeMachineDrain"
	r := filled(t,
		registrationOf("gold", handlerOf("v", drain, hook.Fail)), registrationOf("named", handlerOf("v", drain, hook.Fail)),
		registrationOf("other", handlerOf("v", "BeforeMachineTerminate", hook.Fail)),
	)
	r.SetPolicies("gold", forHandler("v", policy.Policy{ObjectSelector: selector(t, "tier=gold")}))
	r.SetPolicies("named", forHandler("v", policy.Policy{
		Conditions: conditions(t, `request.machine.metadata.labels.tier != "none"`), FailurePolicy: hook.Fail,
	}))
	for label, want := range map[string][]string{
		"gold": {"v.gold", "v.named"}, "silver": {"v.named"}, "none": nil,
	} {
		called := &callLog{}
		o := newObserved(r)
		p := NewInProcess(newObservedDispatcher(o, r, called), "test")
		names, err := p.Targets(t.Context(), hookOf(t, drain), machineWith(label))
		if err != nil || !slices.Equal(names, want) || len(called.calls) > 0 {
			t.Errorf("%s: targets %v, %v, want %v; called %v", label, names, err, want, called.calls)
		}
		answer, holders, err := p.Call(t.Context(), hookOf(t, drain), machineWith(label))
		slices.Sort(called.calls)
		if err != nil || len(holders) > 0 || !slices.Equal(called.calls, want) {
			t.Errorf("%s: called %v, %v, want %v; held by %v", label, called.calls, err, want, holders)
		}
		if status := answer.(*machinesv1alpha1.BeforeMachineDrainResponse).GetStatus(); status != success {
			t.Errorf("%s: answer %v", label, answer)
		}
		wantCount(t, o.series, "hookgate_requests_total", 1, "in-process", drain, "")
	}
}

// TestInProcessErrors asks a gateway that does not know its handlers yet, about nothing, and calls one that panics.
func TestInProcessErrors(t *testing.T) {
	const drain = "BeforeMachineDrain"
	panics := callerFunc(func(context.Context, extension.Call) (proto.Message, error) { panic("oh") })
	ready := filled(t, registrationOf("a", handlerOf("v", drain, hook.Fail)))
	for name, c := range map[string]struct {
		registry             *registry.Registry
		request              proto.Message
		targets, call        hook.Kind
		targetsSay, callSays string
	}{
		"not ready": {registry.New(), machineWith(""), hook.NotReady, hook.NotReady, "", ""},
		"no Machine": {
			ready, &machinesv1alpha1.BeforeMachineDrainRequest{}, hook.InvalidRequest, hook.InvalidRequest,
			"machine: required", "machine: required",
		},
		"a panic": {ready, machineWith(""), 0, hook.Internal, "", "v.a"},
	} {
		o := newObserved(c.registry)
		p := NewInProcess(newObservedDispatcher(o, c.registry, panics), "test")
		_, err := p.Targets(t.Context(), hookOf(t, drain), c.request)
		if hook.KindOf(err) != c.targets || err != nil && !strings.Contains(err.Error(), c.targetsSay) {
			t.Errorf("%s: targets: %v", name, err)
		}
		_, _, err = p.Call(t.Context(), hookOf(t, drain), c.request)
		if hook.KindOf(err) != c.call || !strings.Contains(err.Error(), c.callSays) {
			t.Errorf("%s: call: %v", name, err)
		}
		wantCount(t, o.series, "hookgate_requests_total", 1, "in-process", drain, c.call.String())
	}
}

// TestHolders wants the names of the handlers that hold, refuse and fail, and no others.
func TestHolders(t *testing.T) {
	const drain = "BeforeMachineDrain"
	var regs []registry.Registration
	for _, name := range []string{"done", "fails", "holds", "refuses"} {
		regs = append(regs, registrationOf(name, handlerOf("v", drain, hook.Fail)))
	}
	r := filled(t, regs...)
	c := answers{
		"v.done":    says(&machinesv1alpha1.BeforeMachineDrainResponse{Status: success}),
		"v.holds":   says(&machinesv1alpha1.BeforeMachineDrainResponse{Status: success, RetryAfterSeconds: 5}),
		"v.refuses": says(&machinesv1alpha1.BeforeMachineDrainResponse{Status: failure}),
		"v.fails":   fails(hook.Errorf(hook.Unreachable, "down")),
	}
	p := NewInProcess(newObservedDispatcher(newObserved(r), r, c), "test")
	_, holders, err := p.Call(t.Context(), hookOf(t, drain), machineWith(""))
	if want := []string{"v.fails", "v.holds", "v.refuses"}; !slices.Equal(holders, want) || hook.KindOf(err) != hook.Unreachable {
		t.Errorf("holders %v, %v, want %v", holders, err, want)
	}
}
