// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

// toleratedProviders has at least one provider for each MUST of infrastructure that keeps the rule in a way that a careless check
// would take for a violation.
var toleratedProviders = []struct {
	check, how string
	is         func(*backend)
}{
	{"infrastructure.discovery", "has the shortest and the longest timeout", announcing(func(out discoverResponse) {
		out.Handlers[0].TimeoutSeconds, out.Handlers[1].TimeoutSeconds = proto.Int32(0), proto.Int32(30)
	})},
	{"infrastructure.failure-policies", "says Fail itself", announcing(func(out discoverResponse) {
		for _, h := range out.GetHandlers() {
			h.FailurePolicy = hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL
		}
	})},
	{"infrastructure.pairs", "has pools alone", announcing(func(out discoverResponse) {
		out.Handlers = slices.DeleteFunc(out.Handlers, func(h *hooksv1alpha1.ExtensionHandler) bool {
			return !strings.HasSuffix(h.GetName(), "machinepool")
		})
	})},
	{"infrastructure.prefix", "has a scheme with signs and a path", func(b *backend) {
		const prefix = "acme-2.c+d://Region_1/"
		announcing(func(out discoverResponse) { out.ProviderIdPrefix = prefix })(b)
		b.answer = func(_, out proto.Message) {
			switch a := out.(type) {
			case machineResponse:
				a.ProviderId = strings.Replace(a.ProviderId, "acme://", prefix, 1)
			case poolResponse:
				for _, i := range a.GetInstances() {
					i.ProviderId = strings.Replace(i.ProviderId, "acme://", prefix, 1)
				}
			}
		}
		b.known = func(id string) string { return strings.Replace(id, prefix, "acme://", 1) }
	}},
	{"infrastructure.schemas", "announces none, because there are no parameters", announcing(func(out discoverResponse) {
		out.ClusterParameters, out.MachineParameters, out.MachinePoolParameters = nil, nil, nil
		out.MachineCapacities = out.MachineCapacities[len(out.MachineCapacities)-1:] // that of all machines
	})},
	{"infrastructure.schemas", "leaves a part open", announcing(func(out discoverResponse) {
		out.MachineParameters.Raw = []byte(`{"type":"object","properties":{"size":{"type":"string"},` +
			`"tags":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"port":{"x-kubernetes-int-or-string":true}}}`)
	})},
	{"infrastructure.capacities", "has resources of its own, and quantities of all forms", announcing(func(out discoverResponse) {
		out.MachineCapacities[0].Capacity = map[string]string{
			"cpu": "1500m", "memory": "8e9", "acme.example/gpu": "1", "hugepages-2Mi": "1Gi", "ephemeral-storage": "1.5Ti", "pods": "0",
		}
	})},
	{"infrastructure.gone", "needs three looks to be sure", func(b *backend) {
		looks := map[string]int{}
		b.answer = func(in, out proto.Message) {
			id := in.(interface {
				GetSubject() *infrastructurev1alpha1.Subject
			}).GetSubject().GetExternalId()
			if looks[id]++; looks[id] > 3 {
				return
			}
			switch a := out.(type) {
			case deleteResponse:
				a.State = deleting
			case *infrastructurev1alpha1.DeleteMachinePoolResponse:
				a.State = deleting
			case *infrastructurev1alpha1.DeleteClusterResponse:
				a.State = deleting
			}
		}
	}},
	{"infrastructure.ready", "has no quota at first", refusing(2)},
	{"infrastructure.states", "gives a reason for what is no failure", altering(func(out machineResponse) {
		if out.Reason == "" {
			out.Reason = "AsItShouldBe"
		}
	})},
	{"infrastructure.states", "answers a Failure without a phase", refusing(1)},
	{"infrastructure.same", "says how often it was asked, and lists machines in another order each time", func(b *backend) {
		asked := 0
		b.answer = func(_, out proto.Message) {
			asked++
			switch a := out.(type) {
			case machineResponse:
				a.Message, a.RetryAfterSeconds = fmt.Sprint(asked, " times"), int32(asked%2)
				a.Conditions = []*infrastructurev1alpha1.Condition{{Type: "Asked", Status: "True", Reason: fmt.Sprint("N", asked)}}
			case poolResponse:
				if asked%2 == 0 {
					slices.Reverse(a.GetInstances())
				}
			}
		}
	}},
	{"infrastructure.sole", "knows the provider ID of a machine when it is ready", withoutEarlyIDs},
	{"infrastructure.provider-ids", "knows them when machines are ready", withoutEarlyIDs},
	{"infrastructure.lists", "lists machines before they have a provider ID", withoutEarlyIDs},
	{"infrastructure.remove", "takes its time, and lists the machine until it is gone", func(b *backend) {
		var last *infrastructurev1alpha1.Instance
		first, looks := "", 0
		b.answer = func(in, out proto.Message) {
			r, ok := in.(*infrastructurev1alpha1.ReconcileMachinePoolRequest)
			if !ok {
				return
			}
			a := out.(poolResponse)
			if len(a.GetInstances()) == 2 && first == "" && a.GetPhase() == isReady {
				first, last = a.GetInstances()[0].GetProviderId(), proto.CloneOf(a.GetInstances()[0])
			}
			if looks++; len(r.GetRemove()) == 0 || r.GetRemove()[0] != first {
				looks = 0
			} else if looks < 4 {
				last.Phase = provisioning
				a.Instances, a.Phase = append(a.Instances, last), provisioning
				a.InstanceCount = new(int32(len(a.GetInstances())))
			}
		}
	}},
	{"infrastructure.secrets", "names a credential, and has a user name as short as a letter", altering(func(out machineResponse) {
		out.Message = "logged in as x with the token of the Secret"
	})},
	{"infrastructure.addresses", "has an address of each type", altering(func(out machineResponse) {
		for _, of := range addressTypes {
			out.Addresses = append(out.Addresses, &infrastructurev1alpha1.MachineAddress{Type: of, Address: "a"})
		}
	})},
	{"infrastructure.again", "looks before it says that a machine is gone", func(b *backend) {
		looks := 0
		b.answer = func(_, out proto.Message) {
			if a, ok := out.(machineResponse); ok && a.GetReason() == "InstanceGone" {
				if looks++; looks < 3 {
					a.Phase, a.Reason = provisioning, ""
				}
			}
		}
	}},
	{"infrastructure.deleted", "cannot tell in between", func(b *backend) {
		asked := 0
		b.answer = func(_, out proto.Message) {
			if a, ok := out.(deleteResponse); ok && a.GetState() == deleting {
				if asked++; asked == 1 {
					a.Status, a.State, a.Message = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, 0, "the cloud is busy"
				}
			}
		}
	}},
}

// refusing makes the first n requests to make a machine fail.
func refusing(n int) func(*backend) {
	return func(b *backend) {
		b.answer = func(_, out proto.Message) {
			if a, ok := out.(machineResponse); ok && n > 0 {
				n--
				proto.Reset(a)
				a.Status, a.Message = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, "no quota"
			}
		}
	}
}

// withoutEarlyIDs leaves out the provider IDs of machines that are not ready.
func withoutEarlyIDs(b *backend) {
	b.answer = func(_, out proto.Message) {
		switch a := out.(type) {
		case machineResponse:
			if a.GetPhase() != isReady {
				a.ProviderId = ""
			}
		case poolResponse:
			for _, i := range a.GetInstances() {
				if a.GetPhase() != isReady {
					i.ProviderId = ""
				}
			}
		}
	}
}

// TestToleratedProviders checks that checks of infrastructure fail no provider that keeps all rules.
func TestToleratedProviders(t *testing.T) {
	for i, p := range toleratedProviders {
		t.Run(p.check+"/"+p.how, func(t *testing.T) {
			t.Parallel()
			s := newStub()
			s.backend = newBackend()
			p.is(s.backend)
			protocol := []Protocol{REST, GRPC}[i%2]
			report, err := Run(t.Context(), s.start(t, protocol), Options{Infrastructure: parametersOf(), Only: []string{"infrastructure"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if r.Status == Fail || r.ID == p.check && r.Status != Pass {
					t.Errorf("a provider that %s: %s: got %s %s %+v", p.how, r.ID, r.Status, r.Reason, r.Findings)
				}
			}
			if left := s.backend.left(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
