// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

func raw(text string) *hooksv1alpha1.RawExtension {
	return &hooksv1alpha1.RawExtension{Raw: []byte(text)}
}

func merges(text string) *hooksv1alpha1.Patch {
	return &hooksv1alpha1.Patch{PatchType: mergePatch, Patch: []byte(text)}
}

// machineRequest is a request to update a Machine from one spec to another, with the objects of its references.
func machineRequest(current, desired [3]string) *hooksv1alpha1.CanUpdateMachineRequest {
	objects := func(specs [3]string) *hooksv1alpha1.CanUpdateMachineRequestObjects {
		of := func(i int) *hooksv1alpha1.RawExtension {
			if specs[i] == "" {
				return nil
			}
			return raw(`{"metadata":{"name":"n"},"spec":` + specs[i] + `}`)
		}
		return &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: of(0), InfrastructureMachine: of(1), BootstrapConfig: of(2)}
	}
	return &hooksv1alpha1.CanUpdateMachineRequest{Current: objects(current), Desired: objects(desired)}
}

// What counts is what Cluster API compares; it is named by its path, as far down as there are objects.
func TestUncovered(t *testing.T) {
	for reason, tt := range map[string]struct {
		current, desired [3]string
		want             string
	}{
		"equal in another notation":   {[3]string{`{"version":"v1","x":{"y":1}}`, `{}`, `{}`}, [3]string{`{"x":{"y":1}, "version":"v1"}`, `{}`, `{}`}, ""},
		"a member":                    {[3]string{`{"version":"v1"}`, `{}`, `{}`}, [3]string{`{"version":"v2"}`, `{}`, `{}`}, "/machine/spec/version"},
		"members of several objects":  {[3]string{`{}`, `{"a":{"b":1,"c/d":[1]}}`, `{"e":1}`}, [3]string{`{}`, `{"a":{"b":2,"c/d":[2]},"new":{"f":1}}`, `{}`}, "/bootstrapConfig/spec/e, /infrastructureMachine/spec/a/b, /infrastructureMachine/spec/a/c~1d, /infrastructureMachine/spec/new/f"},
		"an empty object that is new": {[3]string{`{}`, `{}`, `{}`}, [3]string{`{}`, `{"a":{}}`, `{}`}, "/infrastructureMachine/spec/a"},
		"null is not absent":          {[3]string{`{}`, `{}`, `{}`}, [3]string{`{}`, `{"a":null}`, `{}`}, "/infrastructureMachine/spec/a"},
		"an object that is missing":   {[3]string{`{}`, `{}`, ``}, [3]string{`{}`, `{}`, `{"a":1}`}, "/bootstrapConfig/spec/a"},
		"what Cluster API changes itself": {
			[3]string{`{"providerID":"a","deletion":{"nodeDrainTimeoutSeconds":1},"bootstrap":{"dataSecretName":"s"}}`, `{}`, `{}`},
			[3]string{`{"taints":[1],"readinessGates":[],"minReadySeconds":2,"clusterName":"c","infrastructureRef":{"name":"i"}}`, `{}`, `{}`}, "",
		},
		"such names elsewhere": {[3]string{`{"deletion":{"order":"x"}}`, `{"providerID":"a"}`, `{}`}, [3]string{`{}`, `{}`, `{}`}, "/infrastructureMachine/spec/providerID, /machine/spec/deletion/order"},
	} {
		got, err := NewInPlace(machineRequest(tt.current, tt.desired), jsonpatch.Guard{}).Uncovered()
		if err != nil || strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: got %q and %v, want %q", reason, got, err, tt.want)
		}
	}
}

// The answer of a chain has one patch for each object that changed, which makes of the original what the steps made of
// it, whatever they did; the status of an object and its name are nothing that a step can change.
func TestCompletePatches(t *testing.T) {
	request := machineRequest([3]string{`{"version":"v1"}`, `{"a":1}`, `{"keep":1}`}, [3]string{`{"version":"v2"}`, `{"a":2,"b":3}`, `{"keep":1}`})
	request.Current.BootstrapConfig = raw(`{"metadata":{"name":"n"}}`)
	c := NewInPlace(request, jsonpatch.Guard{})
	original := proto.Clone(request)
	for _, answer := range []*hooksv1alpha1.CanUpdateMachineResponse{
		{MachinePatch: merges(`{"spec":{"version":"v2"},"metadata":{"name":"other"}}`)},
		{InfrastructureMachinePatch: merges(`{"spec":{"a":2}}`)},
		{
			InfrastructureMachinePatch: &hooksv1alpha1.Patch{PatchType: jsonPatch, Patch: []byte(`[{"op":"test","path":"/spec/a","value":2},{"op":"add","path":"/spec/b","value":3}]`)},
			BootstrapConfigPatch:       merges(`{"spec":{"keep":1}}`),
		},
	} {
		if err := c.Add(answer, nil); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := c.Uncovered(); len(left) > 0 || err != nil {
		t.Errorf("left are %q, %v", left, err)
	}
	if !proto.Equal(request, original) {
		t.Error("the request has changed")
	}
	next := c.Request().(*hooksv1alpha1.CanUpdateMachineRequest)
	if got := string(next.GetCurrent().GetMachine().GetRaw()); got != `{"metadata":{"name":"n"},"spec":{"version":"v2"}}` {
		t.Errorf("the next step sees %s", got)
	}
	var whole hooksv1alpha1.CanUpdateMachineResponse
	c.Complete(&whole)
	for i, tt := range []struct {
		patch *hooksv1alpha1.Patch
		of    *hooksv1alpha1.RawExtension
		want  string
	}{
		{whole.GetMachinePatch(), request.GetCurrent().GetMachine(), `{"metadata":{"name":"n"},"spec":{"version":"v2"}}`},
		{whole.GetInfrastructureMachinePatch(), request.GetCurrent().GetInfrastructureMachine(), `{"metadata":{"name":"n"},"spec":{"a":2,"b":3}}`},
		{whole.GetBootstrapConfigPatch(), request.GetCurrent().GetBootstrapConfig(), `{"metadata":{"name":"n"},"spec":{"keep":1}}`},
	} {
		got, err := clusterAPI(tt.of.GetRaw(), tt.patch.GetPatchType(), tt.patch.GetPatch(), "/spec")
		if err != nil {
			t.Fatal(i, err)
		}
		mustEqual(t, "object", got, []byte(tt.want))
	}
}

// MachineSets are patched and compared in their template alone.
func TestMachineSetTemplates(t *testing.T) {
	set := func(version, replicas string) *hooksv1alpha1.RawExtension {
		return raw(`{"spec":{"replicas":` + replicas + `,"template":{"spec":{"version":"` + version + `"}}}}`)
	}
	c := NewInPlace(&hooksv1alpha1.CanUpdateMachineSetRequest{
		Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: set("v1", "1"), InfrastructureMachineTemplate: raw(`{}`)},
		Desired: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: set("v2", "2"), InfrastructureMachineTemplate: raw(`{"spec":{"x":1}}`)},
	}, jsonpatch.Guard{})
	if left, err := c.Uncovered(); err != nil || strings.Join(left, " ") != "/machineSet/spec/template/spec/version" {
		t.Errorf("got %q, %v", left, err)
	}
	if err := c.Add(&hooksv1alpha1.CanUpdateMachineSetResponse{
		MachineSetPatch: merges(`{"spec":{"replicas":9,"template":{"spec":{"version":"v2"}}}}`),
	}, nil); err != nil {
		t.Fatal(err)
	}
	var whole hooksv1alpha1.CanUpdateMachineSetResponse
	c.Complete(&whole)
	if got, want := string(whole.GetMachineSetPatch().GetPatch()), `[{"op":"add","path":"/spec/template/spec","value":{"version":"v2"}}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A step that claims more than it may is a bad answer.
func TestAllow(t *testing.T) {
	for patch, want := range map[string]string{
		`{"spec":{"version":"v2"}}`:                   "",
		`{"spec":{"kubelet":{"a":{"b":1}}}}`:          "",
		`{"spec":{"kubelets":1}}`:                     "patch of machine: it changes /machine/spec/kubelets, which the chain does not allow the step to change",
		`{"spec":{"version":null,"other":{"x":1}}}`:   "patch of machine: it changes /machine/spec/other/x, which the chain does not allow the step to change",
		`{"spec":null,"metadata":{"labels":{"a":1}}}`: "",
	} {
		c := NewInPlace(machineRequest([3]string{`{"version":"v1"}`, `{}`, `{}`}, [3]string{`{}`, `{}`, `{}`}), jsonpatch.Guard{})
		got := ""
		if err := c.Add(&hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: merges(patch)}, []string{"/machine/spec/version", "/machine/spec/kubelet"}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", patch, got, want)
		}
	}
}

// An update leaves Machines available only if every step that contributes says so.
func TestAffectsAvailability(t *testing.T) {
	for reason, tt := range map[string]struct {
		answers []*hooksv1alpha1.CanUpdateMachineResponse
		want    *bool
	}{
		"all say no": {[]*hooksv1alpha1.CanUpdateMachineResponse{
			{MachinePatch: merges(`{"spec":{"a":1}}`), AffectsAvailability: new(false)}, {MachinePatch: merges(`{"spec":{"b":1}}`), AffectsAvailability: new(false)},
		}, new(false)},
		"one says nothing": {[]*hooksv1alpha1.CanUpdateMachineResponse{
			{MachinePatch: merges(`{"spec":{"a":1}}`), AffectsAvailability: new(false)}, {MachinePatch: merges(`{"spec":{"b":1}}`)},
		}, nil},
		"one says yes and contributes nothing": {[]*hooksv1alpha1.CanUpdateMachineResponse{
			{MachinePatch: merges(`{"spec":{"a":1}}`), AffectsAvailability: new(false)}, {MachinePatch: merges(`{}`), AffectsAvailability: new(true)},
		}, new(false)},
		"none contributes": {[]*hooksv1alpha1.CanUpdateMachineResponse{{AffectsAvailability: new(false)}}, nil},
	} {
		c := NewInPlace(machineRequest([3]string{`{}`, `{}`, `{}`}, [3]string{`{}`, `{}`, `{}`}), jsonpatch.Guard{})
		for _, a := range tt.answers {
			if err := c.Add(a, nil); err != nil {
				t.Fatal(err)
			}
		}
		var whole hooksv1alpha1.CanUpdateMachineResponse
		c.Complete(&whole)
		if got := whole.AffectsAvailability; (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: got %v, want %v", reason, got, tt.want)
		}
	}
}

// As of templates, the chain's answer applied to the original objects makes what the steps made, one after the other.
func TestInPlaceIsThatOfSteps(t *testing.T) {
	applied := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		original := [2][]byte{[]byte(randomObject(r)), []byte(randomObject(r))}
		wanted := original
		objects := func() *hooksv1alpha1.CanUpdateMachineRequestObjects {
			return &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: raw(`{"spec":{"version":"v1"}}`), InfrastructureMachine: raw(string(original[0])), BootstrapConfig: raw(string(original[1]))}
		}
		c := NewInPlace(&hooksv1alpha1.CanUpdateMachineRequest{Current: objects(), Desired: objects()}, jsonpatch.Guard{})
		for range 1 + r.IntN(5) {
			answer := &hooksv1alpha1.CanUpdateMachineResponse{}
			for at, to := range []**hooksv1alpha1.Patch{&answer.InfrastructureMachinePatch, &answer.BootstrapConfigPatch} {
				kind, patch := randomPatch(r)
				patched, err := clusterAPI(wanted[at], kind, []byte(patch), "/spec")
				if err != nil || r.IntN(3) == 0 {
					continue
				}
				wanted[at], *to = patched, &hooksv1alpha1.Patch{PatchType: kind, Patch: []byte(patch)}
				applied++
			}
			if err := c.Add(answer, nil); err != nil {
				t.Fatalf("seed %d: %v of %v", seed, err, answer)
			}
			now := c.Request().(*hooksv1alpha1.CanUpdateMachineRequest).GetCurrent()
			mustEqual(t, fmt.Sprintf("seed %d", seed), now.GetInfrastructureMachine().GetRaw(), wanted[0])
			mustEqual(t, fmt.Sprintf("seed %d", seed), now.GetBootstrapConfig().GetRaw(), wanted[1])
		}
		answer := &hooksv1alpha1.CanUpdateMachineResponse{}
		c.Complete(answer)
		for at, p := range []*hooksv1alpha1.Patch{answer.GetInfrastructureMachinePatch(), answer.GetBootstrapConfigPatch()} {
			whole := original[at]
			if p != nil {
				var err error
				if whole, err = clusterAPI(whole, p.GetPatchType(), p.GetPatch(), "/spec"); err != nil {
					t.Fatalf("seed %d: the answer does not apply: %v", seed, err)
				}
			}
			mustEqual(t, fmt.Sprintf("seed %d, answer", seed), whole, wanted[at])
		}
	}
	if applied < 2000 {
		t.Errorf("only %d patches applied", applied)
	}
}
