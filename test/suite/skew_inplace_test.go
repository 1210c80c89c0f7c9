// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// An old extension's answers to the in-place hooks serve v1.14 as well as v1.12: both send v1beta2 there.
func TestSkewOldExtensionsPatches(t *testing.T) {
	g := startOld(t, oldPolicies())
	for front, call := range callers(g, g.dial(t)) {
		for hook, tc := range map[string]struct{ object, patch string }{
			"CanUpdateMachine":    {"machine", "machinePatch"},
			"CanUpdateMachineSet": {"machineSet", "machineSetPatch"},
		} {
			t.Run(front+" "+hook, func(t *testing.T) {
				body := samples.Body(hook)
				request := decodeMembers(t, body)
				patched := patchOf(t, call(t, hook, oldHandler(hook)+".old", body), tc.patch).apply(t,
					object(t, request, "current", tc.object))
				if found := differences(object(t, request, "desired", tc.object)["spec"], patched["spec"]); found != nil {
					t.Errorf("the patched %s is not what was wanted:\n%s", tc.object, strings.Join(found, "\n"))
				}
			})
		}
	}
}

// patch is a patch in an answer.
type patch struct {
	kind string
	body []byte
}

// patchOf returns the named patch of an answer, and fails the test without it.
func patchOf(t *testing.T, answer members, name string) patch {
	t.Helper()
	raw, err := json.Marshal(answer[name])
	if err != nil {
		t.Fatal(err)
	}
	var p runtimehooksv1.Patch
	if err := json.Unmarshal(raw, &p); err != nil || len(p.Patch) == 0 || answer["status"] != "Success" {
		t.Fatalf("no %s: %v; the answer is %v", name, err, answer)
	}
	return patch{string(p.PatchType), p.Patch}
}

// apply returns object with the patch applied, as a caller would apply it.
func (p patch) apply(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var after []byte
	switch p.kind {
	case string(runtimehooksv1.JSONMergePatchType):
		after, err = jsonpatch.MergePatch(before, p.body)
	case string(runtimehooksv1.JSONPatchType):
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(p.body); err == nil {
			after, err = operations.Apply(before)
		}
	default:
		t.Fatalf("patch of type %q", p.kind)
	}
	if err != nil {
		t.Fatalf("apply %s: %v", p.body, err)
	}
	return decodeMembers(t, after)
}

// object returns the object of a request at a path of member names.
func object(t *testing.T, m members, way ...string) map[string]any {
	t.Helper()
	value := map[string]any(m)
	for _, name := range way {
		next, ok := value[name].(map[string]any)
		if !ok {
			t.Fatalf("no object at %s", strings.Join(way, "."))
		}
		value = next
	}
	return value
}

// A handler that knows only v1beta1 Machines gets those, and its patch changes only what the handler changed: fields
// that v1beta1 lacks are kept.
func TestSkewPatchesOfMachinesInV1Beta1(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	encode := func(patch string) string { return base64.StdEncoding.EncodeToString([]byte(patch)) }
	for hook, answer := range map[string]string{
		"CanUpdateMachine":    `"machinePatch":{"patchType":"JSONMergePatch","patch":"` + encode(`{"spec":{"version":"v1.33.4","nodeDrainTimeout":"15m0s"}}`) + `"}`,
		"CanUpdateMachineSet": `"machineSetPatch":{"patchType":"JSONPatch","patch":"` + encode(`[{"op":"replace","path":"/spec/template/spec/version","value":"v1.33.4"}]`) + `"}`,
		"UpdateMachine":       `"retryAfterSeconds":3`,
	} {
		s.serve(hook, strings.ToLower(hook), handlerOptions{},
			say(`{"kind":"`+hook+`Response","status":"Success",`+answer+`}`))
	}
	manifests := crdManifests(t)
	manifests["s.yaml"], manifests["policy.yaml"] = registration{name: "s", url: s.server.URL}.manifest(a),
		understands("s", "", "v1beta1")
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "ready--s")
	for front, call := range callers(g, g.dial(t)) {
		t.Run(front+" CanUpdateMachine", func(t *testing.T) {
			request := samples.Request("CanUpdateMachine").(*runtimehooksv1.CanUpdateMachineRequest)
			// v1beta1 has no field for this.
			request.Current.Machine.Spec.MinReadySeconds, request.Desired.Machine.Spec.MinReadySeconds = ptr.To[int32](30), ptr.To[int32](30)
			body := samples.Marshal(request)
			answer := call(t, "CanUpdateMachine", "canupdatemachine--s", body)

			seen := object(t, decodeMembers(t, s.last("CanUpdateMachine", "canupdatemachine")), "current", "machine")
			if seen["apiVersion"] != "cluster.x-k8s.io/v1beta1" || seen["kind"] != "Machine" {
				t.Errorf("the handler got a %v of %v", seen["kind"], seen["apiVersion"])
			}
			spec := seen["spec"].(map[string]any)
			if spec["nodeDrainTimeout"] != "10m0s" {
				t.Errorf("the handler got nodeDrainTimeout %v", spec["nodeDrainTimeout"])
			}
			if diff := cmp.Diff(map[string]any{
				"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "AWSMachine", "name": "payments-eu-west-1-x7k2p-m4rtz", "namespace": "team-payments",
			}, spec["infrastructureRef"]); diff != "" {
				t.Errorf("infrastructureRef (-want +got):\n%s", diff)
			}

			current := object(t, decodeMembers(t, body), "current", "machine")
			patched := patchOf(t, answer, "machinePatch").apply(t, current)
			checkChanges(t, current, patched, "spec.deletion.nodeDrainTimeoutSeconds: is 900, want 600",
				"spec.version: is v1.33.4, want v1.32.7")
		})
		t.Run(front+" CanUpdateMachineSet", func(t *testing.T) {
			body := samples.Body("CanUpdateMachineSet")
			answer := call(t, "CanUpdateMachineSet", "canupdatemachineset--s", body)
			seen := object(t, decodeMembers(t, s.last("CanUpdateMachineSet", "canupdatemachineset")), "desired",
				"machineSet")
			if seen["apiVersion"] != "cluster.x-k8s.io/v1beta1" || seen["kind"] != "MachineSet" {
				t.Errorf("the handler got a %v of %v", seen["kind"], seen["apiVersion"])
			}
			current := object(t, decodeMembers(t, body), "current", "machineSet")
			patched := patchOf(t, answer, "machineSetPatch").apply(t, current)
			checkChanges(t, current, patched, "spec.template.spec.version: is v1.33.4, want v1.32.7")
		})
		t.Run(front+" UpdateMachine", func(t *testing.T) {
			answer := call(t, "UpdateMachine", "updatemachine--s", samples.Body("UpdateMachine"))
			if answer["retryAfterSeconds"] != json.Number("3") {
				t.Errorf("the answer is %v", answer)
			}
			seen := object(t, decodeMembers(t, s.last("UpdateMachine", "updatemachine")), "desired", "machine")
			if seen["apiVersion"] != "cluster.x-k8s.io/v1beta1" {
				t.Errorf("the handler got a %v of %v", seen["kind"], seen["apiVersion"])
			}
		})
	}
	// Losses on the way to the handler are counted for each of the two calls, and logged once.
	if want := `hookgate_conversion_lost_members_total{handler="canupdatemachine.s",hook="CanUpdateMachine"} 2`; !strings.Contains(g.metrics(t), want+"\n") {
		t.Errorf("the metrics have no %s", want)
	}
	g.checkLoggedOnce(t, "machine.spec.minReadySeconds")
}

// A caller with v1beta1 Machines gets patches for v1beta1 from a current extension.
func TestSkewPatchesForCallersInV1Beta1(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "new", "0")
	manifests := crdManifests(t)
	manifests["new.yaml"], manifests["policy.yaml"] = registration{name: "new", url: e.url}.manifest(a),
		understands("new", "", "v1beta2")
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "patches--new")
	machine := func(version string) map[string]any {
		return map[string]any{
			"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine",
			"metadata": map[string]any{"name": "m", "namespace": "team"},
			"spec": map[string]any{
				"clusterName": "c", "version": version, "nodeDrainTimeout": "10m0s", "providerID": "aws:///eu/1",
				"bootstrap":         map[string]any{"configRef": map[string]any{"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "name": "m", "namespace": "team", "uid": "1"}},
				"infrastructureRef": map[string]any{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AWSMachine", "name": "m", "namespace": "team"},
				"example":           map[string]any{"unknown": json.Number("9007199254740993")},
			},
		}
	}
	request := map[string]any{
		"apiVersion": runtimehooksv1.GroupVersion.String(), "kind": "CanUpdateMachineRequest",
		"current": map[string]any{"machine": machine("v1.32.7"), "infrastructureMachine": map[string]any{}, "bootstrapConfig": map[string]any{}},
		"desired": map[string]any{"machine": machine("v1.33.4"), "infrastructureMachine": map[string]any{}, "bootstrapConfig": map[string]any{}},
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for front, call := range callers(g, g.dial(t)) {
		answer := call(t, "CanUpdateMachine", "can-update-machine--new", body)
		current := object(t, decodeMembers(t, body), "current", "machine")
		patched := patchOf(t, answer, "machinePatch").apply(t, current)
		t.Run(front, func(t *testing.T) { checkChanges(t, current, patched, "spec.version: is v1.33.4, want v1.32.7") })
	}
}

// checkChanges compares an object before and after a patch.
func checkChanges(t *testing.T, before, after map[string]any, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, differences(before, after)); diff != "" {
		t.Errorf("what the patch changes (-want +got):\n%s", diff)
	}
}
