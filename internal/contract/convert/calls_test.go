// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// patchObjects knows what hubMachine and oldMachineSet refer to.
func patchObjects() *Objects {
	o := sampleObjects()
	o.refs.Set([]CRD{
		{Name: "awsmachines.infrastructure.cluster.x-k8s.io",
			Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}},
		{Name: "bs.acme.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}},
		{Name: "is.acme.io", Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1"}},
	})
	return o
}

func machineRequest(current, desired string) *hooksv1alpha1.CanUpdateMachineRequest {
	return &hooksv1alpha1.CanUpdateMachineRequest{
		Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: raw(current)},
		Desired: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: raw(desired)},
	}
}

func machineAnswer(t hooksv1alpha1.PatchType, patch string) *hooksv1alpha1.CanUpdateMachineResponse {
	return &hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: &hooksv1alpha1.Patch{PatchType: t,
		Patch: []byte(patch)}}
}

// A call can have different losses on the way to the handler and on the way back. Each is reported for its direction.
func TestLossesOfBothWays(t *testing.T) {
	desired := `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"minReadySeconds":1},"status":{"phase":"Updating"}}`
	c, err := patchObjects().Request(machineRequest(hubMachine, desired), V1Beta1)
	if err != nil {
		t.Fatal(err)
	}
	// The second one is of both objects, the third one of the desired object alone.
	want := []string{"machine.spec.deletion.new", "machine.spec.minReadySeconds", "machine.status.phase"}
	if diff := cmp.Diff(want, c.Losses); diff != "" {
		t.Errorf("losses of the request (-want +got):\n%s", diff)
	}
	_, losses, err := c.Response(machineAnswer(mergePatch,
		`{"spec":{"nodeDrainTimeout":"1m0.5s","version":"v1.34.0"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"machine.spec.nodeDrainTimeout"}, losses); diff != "" {
		t.Errorf("losses of the answer (-want +got):\n%s", diff)
	}
}

// A loss that the caller's object had before the patch is not attributed to the patch.
func TestLossesBeforeThePatchAreNotOfThePatch(t *testing.T) {
	c, err := patchObjects().Request(&hooksv1alpha1.CanUpdateMachineSetRequest{
		Current: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: raw(oldMachineSet)},
	}, V1Beta2)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"machineSet.spec.template.spec.bootstrap.configRef.namespace", "machineSet.spec.template.spec.infrastructureRef.uid",
		"machineSet.spec.template.spec.nodeDrainTimeout",
	}
	if diff := cmp.Diff(want, c.Losses); diff != "" {
		t.Errorf("losses of the request (-want +got):\n%s", diff)
	}
	_, losses, err := c.Response(&hooksv1alpha1.CanUpdateMachineSetResponse{MachineSetPatch: &hooksv1alpha1.Patch{
		PatchType: mergePatch, Patch: []byte(`{"spec":{"replicas":2}}`),
	}})
	if err != nil || losses != nil {
		t.Errorf("got losses %v, %v, want none", losses, err)
	}
}

// One request goes to handlers of different versions, at the same time, and comes back from each as if it were the
// only one.
func TestHandlersOfDifferentVersions(t *testing.T) {
	o := patchObjects()
	req := machineRequest(hubMachine, hubMachine)
	before := proto.Clone(req)
	var calls sync.WaitGroup
	for range 4 {
		for _, version := range []string{V1Beta1, V1Beta2, ""} {
			calls.Go(func() {
				c, err := o.Request(req, version)
				if err != nil {
					t.Error(err)
					return
				}
				if converted := c.Message != proto.Message(req); converted != (version == V1Beta1) {
					t.Errorf("%q: converted is %t", version, converted)
				}
				for _, patch := range []string{`{"spec":{"version":"v1.34.0"}}`,
					`{"spec":{"version":"v1.35.0"}}`} { // asked again
					resp := machineAnswer(mergePatch, patch)
					kept := proto.Clone(resp)
					got, _, err := c.Response(resp)
					if err != nil {
						t.Error(err)
						return
					}
					if diff := cmp.Diff(kept, resp, protocmp.Transform()); diff != "" {
						t.Errorf("the answer was changed:\n%s", diff)
					}
					if text := got.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch.Patch; string(text) != patch {
						t.Errorf("%q: the patch became %s, want %s", version, text, patch)
					}
				}
			})
		}
	}
	calls.Wait()
	if diff := cmp.Diff(before, req, protocmp.Transform()); diff != "" {
		t.Errorf("the request was changed:\n%s", diff)
	}
}

// What is converted does not share memory with the text that it was made from, and leaves the bytes behind that text
// alone.
func TestConvertedTextIsItsOwn(t *testing.T) {
	o := patchObjects()
	for _, object := range []string{
		hubMachine,
		`{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"annotations":{"cluster.x-k8s.io/conversion-data":"{}","a":"b"}},"new":{"a":[1]}}`,
	} {
		text := append(make([]byte, 0, len(object)+64), object...)
		behind := text[len(text):cap(text)]
		req := &hooksv1alpha1.UpdateMachineRequest{
			Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: &hooksv1alpha1.RawExtension{Raw: text}},
		}
		c, err := o.Request(req, V1Beta1)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != object || !bytes.Equal(behind, make([]byte, len(behind))) {
			t.Errorf("the text was changed to %s", text[:cap(text)])
		}
		converted := c.Message.(*hooksv1alpha1.UpdateMachineRequest).Desired.Machine.Raw
		kept := bytes.Clone(converted)
		for i := range text {
			text[i] = '#'
		}
		if !bytes.Equal(kept, converted) {
			t.Errorf("what became of the text changes with it: %s", converted)
		}
	}
}

// A call can have an object in one place and none, or a converted one, in another.
func TestSomeObjectsOfARequest(t *testing.T) {
	const hub, old = `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2"}`, `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta1"}`
	tests := map[string]struct {
		current, desired   string
		converted, patched bool // the desired object, and a patch for the current one
	}{
		"OnlyCurrent": {hub, old, false, true},
		"OnlyDesired": {old, hub, true, false},
		"Both":        {hub, hub, true, true},
		"NullCurrent": {`null`, hub, true, false},
		"NullDesired": {hub, `null`, false, true},
		"NoDesired":   {hub, ``, false, true},
	}
	for name, tc := range tests {
		req := machineRequest(tc.current, tc.desired)
		c, err := patchObjects().Request(req, V1Beta1)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := c.Message.(*hooksv1alpha1.CanUpdateMachineRequest)
		if converted := string(got.Desired.Machine.Raw) != tc.desired; converted != tc.converted {
			t.Errorf("%s: desired is converted: %t, want %t", name, converted, tc.converted)
		}
		if converted := string(got.Current.Machine.Raw) != tc.current; converted != tc.patched {
			t.Errorf("%s: current is converted: %t, want %t", name, converted, tc.patched)
		}
		resp := machineAnswer(jsonPatch, `[{"op":"add","path":"/spec","value":{"clusterName":"c"}}]`)
		answer, _, err := c.Response(resp)
		if err != nil || (answer != proto.Message(resp)) != tc.patched {
			t.Errorf("%s: got %v, %v, want a converted patch: %t", name, answer, err, tc.patched)
		}
	}
}
