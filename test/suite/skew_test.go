// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"k8s.io/utils/ptr"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/samples"
)

// startOld runs the extension of v1.12 as ExtensionConfig "old", and a gateway with policies as manifests by file name.
func startOld(t *testing.T, policies map[string]string) *gateway {
	t.Helper()
	program(t, gatewayVariable)
	program(t, oldCoreVariable)
	a := newAuthority(t)
	e := startOldExtension(t, a)
	manifests := crdManifests(t)
	manifests["old.yaml"] = registration{name: "old", url: e.url}.manifest(a)
	maps.Copy(manifests, policies)
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "discover-variables--old")
	return g
}

// oldPolicies say what the documentation tells to say of an extension that was built for v1.12.
func oldPolicies() map[string]string {
	policies := map[string]string{"policy.yaml": understands("old", "", "v1beta1")}
	for _, hook := range []string{"GenerateUpgradePlan", "CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine"} {
		policies[hook+".yaml"] = understands("old", oldHandler(hook), "v1beta2")
	}
	return policies
}

// callers are the two ways to call a handler; each returns the members of a good answer.
func callers(g *gateway, conn *grpc.ClientConn) map[string]func(t *testing.T, hook, handler string, body []byte) members {
	return map[string]func(t *testing.T, hook, handler string, body []byte) members{
		"REST": func(t *testing.T, hook, handler string, body []byte) members {
			t.Helper()
			got := g.post(t, path(hook, handler), body)
			if got.code != http.StatusOK {
				t.Fatalf("status %d: %.1000s", got.code, got.body)
			}
			return decodeMembers(t, got.body)
		},
		"gRPC": func(t *testing.T, hook, handler string, body []byte) members {
			t.Helper()
			got, err := callGRPC(soon(t), t, conn, hook, handler, body)
			if err != nil {
				t.Fatalf("call: %v", err)
			}
			return fromMessage(t, got.ProtoReflect())
		},
	}
}

// decodedBy returns what an extension that echoes says that it decoded.
func decodedBy(t *testing.T, answer members) members {
	t.Helper()
	message, _ := answer["message"].(string)
	if answer["status"] != "Success" || message == "" {
		t.Fatalf("status %v, message %q", answer["status"], message)
	}
	return decodeMembers(t, []byte(message))
}

// typed takes apiVersion and kind out of an object.
func typed(t *testing.T, object any) (apiVersion, kind any) {
	t.Helper()
	m, ok := object.(map[string]any)
	if !ok {
		t.Fatalf("%v is no object", object)
	}
	apiVersion, kind = m["apiVersion"], m["kind"]
	delete(m, "apiVersion")
	delete(m, "kind")
	return apiVersion, kind
}

// An extension that was built for v1.12 decodes behind a v1.14 what it decodes behind a v1.12, to the last member.
func TestOldExtensionReadsWhatItAlwaysRead(t *testing.T) {
	g := startOld(t, oldPolicies())
	both := callers(g, g.dial(t))
	for _, hook := range samples.Hooks() {
		body := samples.Marshal(requestWith(hook, newerCluster()))
		want := decodeMembers(t, asOldCore(t, hook, body))
		for front, call := range both {
			t.Run(front+" "+hook, func(t *testing.T) {
				got := decodedBy(t, call(t, hook, oldHandler(hook)+".old", body))
				if samples.Lifecycle(hook) {
					// A core of v1.12 leaves these two empty. The gateway says what the object is.
					if apiVersion, kind := typed(t, got["cluster"]); apiVersion != "cluster.x-k8s.io/v1beta1" || kind != "Cluster" {
						t.Errorf("the extension got a %v of %v", kind, apiVersion)
					}
				}
				if found := differences(generic(t, want), generic(t, got)); found != nil {
					t.Errorf("behind v1.14 it differs from behind v1.12:\n%s", strings.Join(found, "\n"))
				}
			})
		}
	}
	if output, _ := g.output.read(); strings.Contains(output, "conversion loses a member") {
		t.Error("the gateway says that it lost something")
	}
}

// A reference whose version nobody knows fails the call, with what to do, also where errors are to be ignored. The definition may come
// while the gateway runs.
func TestReferencesNeedDefinitions(t *testing.T) {
	const hook, handler = "BeforeClusterCreate", "before-cluster-create.old"
	program(t, gatewayVariable)
	a := newAuthority(t)
	e := startOldExtension(t, a)
	g := startGateway(t, a, map[string]string{
		"old.yaml": registration{name: "old", url: e.url}.manifest(a), "policy.yaml": understands("old", "", "v1beta1") + "  failurePolicy: Ignore\n",
	})
	g.awaitHandler(t, "discover-variables--old")
	got := g.post(t, path(hook, handler), samples.Body(hook))
	message := checkFailure(t, hook, got, http.StatusInternalServerError)
	for _, want := range []string{"convert cluster from v1beta2 to v1beta1: spec.infrastructureRef", "awsclusters.infrastructure.cluster.x-k8s.io"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message does not name %s: %s", want, message)
		}
	}
	for file, text := range crdManifests(t) {
		g.write(t, file, text)
	}
	eventually(t, "the call is made once the definition is there", func() bool {
		return g.post(t, path(hook, handler), samples.Body(hook)).code == http.StatusOK
	})
}

// Where nobody says what the extension understands, much of a Cluster does not reach it. This is what the test above can find.
func TestOldExtensionWithoutPolicyMissesMembers(t *testing.T) {
	g := startOld(t, nil)
	for _, hook := range samples.Hooks() {
		body := samples.Marshal(requestWith(hook, fullCluster()))
		want := decodeMembers(t, asOldCore(t, hook, body))
		got := decodedBy(t, callers(g, nil)["REST"](t, hook, oldHandler(hook)+".old", body))
		var expected []string
		if samples.Lifecycle(hook) {
			typed(t, got["cluster"])
			expected = []string{
				"cluster.spec.controlPlaneRef.apiVersion: missing",
				"cluster.spec.controlPlaneRef.namespace: missing",
				"cluster.spec.infrastructureRef.apiVersion: missing",
				"cluster.spec.infrastructureRef.namespace: missing",
				"cluster.spec.topology.class: is , want production-v3",
				"cluster.spec.topology.classNamespace: missing",
				"cluster.spec.topology.controlPlane.machineHealthCheck: missing",
				"cluster.spec.topology.controlPlane.nodeDeletionTimeout: missing",
				"cluster.spec.topology.controlPlane.nodeDrainTimeout: missing",
				"cluster.spec.topology.controlPlane.nodeVolumeDetachTimeout: missing",
				"cluster.spec.topology.workers.machineDeployments[0].machineHealthCheck: missing",
				"cluster.spec.topology.workers.machineDeployments[0].nodeDeletionTimeout: missing",
				"cluster.spec.topology.workers.machineDeployments[0].nodeDrainTimeout: missing",
				"cluster.spec.topology.workers.machineDeployments[0].nodeVolumeDetachTimeout: missing",
				"cluster.spec.topology.workers.machineDeployments[0].strategy: missing",
				"cluster.spec.topology.workers.machineDeployments[1].machineHealthCheck: missing",
				"cluster.spec.topology.workers.machineDeployments[1].strategy: missing",
				"cluster.spec.topology.workers.machinePools[0].nodeDeletionTimeout: missing",
				"cluster.spec.topology.workers.machinePools[0].nodeDrainTimeout: missing",
				"cluster.spec.topology.workers.machinePools[0].nodeVolumeDetachTimeout: missing",
			}
		}
		if diff := cmp.Diff(expected, differences(generic(t, want), generic(t, got))); diff != "" {
			t.Errorf("%s: what the extension misses (-want +got):\n%s", hook, diff)
		}
	}
}

// Callers other than Cluster API may leave the status in. In v1beta1 it has another shape, which the old types must be able to read.
func TestOldExtensionReadsStatus(t *testing.T) {
	const hook = "AfterControlPlaneInitialized"
	g := startOld(t, oldPolicies())
	cluster := samples.ClusterWithStatus()
	full := fullCluster()
	full.Status = cluster.Status
	body := samples.Marshal(requestWith(hook, full))
	want := decodeMembers(t, asOldCore(t, hook, body, "--keep-status"))
	for front, call := range callers(g, g.dial(t)) {
		got := decodedBy(t, call(t, hook, oldHandler(hook)+".old", body))
		typed(t, got["cluster"])
		if found := differences(generic(t, want), generic(t, got)); found != nil {
			t.Errorf("%s: it differs from what v1.12's conversion makes of it:\n%s", front, strings.Join(found, "\n"))
		}
	}
}

// Variables that an old extension discovers have their metadata for callers of both ages.
func TestOldExtensionsVariablesKeepTheirMetadata(t *testing.T) {
	const hook = "DiscoverVariables"
	metadata := map[string]any{"labels": map[string]any{"topic": "compute"}, "annotations": map[string]any{"note": "größer <ist> besser"}}
	for name, tc := range map[string]struct {
		reason   string
		policies map[string]string
		newer    any
	}{
		"with the policy":    {"v1.14 reads it under its new name", oldPolicies(), metadata},
		"without the policy": {"nobody says what the extension understands", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := startOld(t, tc.policies)
			for front, call := range callers(g, g.dial(t)) {
				answer := generic(t, call(t, hook, "discover-variables--old", samples.Body(hook)))
				variables, _ := answer["variables"].([]any)
				if len(variables) != 2 {
					t.Fatalf("%s: %d variables: %v", front, len(variables), answer)
				}
				first := variables[0].(map[string]any)
				if diff := cmp.Diff(tc.newer, first["deprecatedV1Beta1Metadata"]); diff != "" {
					t.Errorf("%s, what v1.14 reads, %s (-want +got):\n%s", front, tc.reason, diff)
				}
				if diff := cmp.Diff(any(metadata), first["metadata"]); diff != "" {
					t.Errorf("%s, what v1.12 reads (-want +got):\n%s", front, diff)
				}
				second := variables[1].(map[string]any)
				if _, ok := second["deprecatedV1Beta1Metadata"]; ok {
					t.Errorf("%s: a variable without metadata has some: %v", front, second)
				}
			}
		})
	}
}

// What an old extension answers to the in-place hooks is as good to a v1.14 as to a v1.12: both send v1beta2 there.
func TestOldExtensionsPatches(t *testing.T) {
	g := startOld(t, oldPolicies())
	for front, call := range callers(g, g.dial(t)) {
		for hook, tc := range map[string]struct{ object, patch string }{
			"CanUpdateMachine":    {"machine", "machinePatch"},
			"CanUpdateMachineSet": {"machineSet", "machineSetPatch"},
		} {
			t.Run(front+" "+hook, func(t *testing.T) {
				body := samples.Body(hook)
				request := decodeMembers(t, body)
				patched := patchOf(t, call(t, hook, oldHandler(hook)+".old", body), tc.patch).apply(t, object(t, request, "current", tc.object))
				if found := differences(object(t, request, "desired", tc.object)["spec"], patched["spec"]); found != nil {
					t.Errorf("the patched %s is not what was wanted:\n%s", tc.object, strings.Join(found, "\n"))
				}
			})
		}
	}
}

// patch is a patch of an answer.
type patch struct {
	kind string
	body []byte
}

// patchOf returns a patch of an answer, which must be there.
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

// apply returns the object with the patch, as a caller applies it.
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

// object returns an object of a request by the names of members on the way to it.
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

// A handler that knows v1beta1 Machines only gets such, and its patch changes what it changed and nothing else: what v1beta1 cannot
// say is still there.
func TestPatchesOfMachinesInV1Beta1(t *testing.T) {
	program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	encode := func(patch string) string { return base64.StdEncoding.EncodeToString([]byte(patch)) }
	for hook, answer := range map[string]string{
		"CanUpdateMachine":    `"machinePatch":{"patchType":"JSONMergePatch","patch":"` + encode(`{"spec":{"version":"v1.33.4","nodeDrainTimeout":"15m0s"}}`) + `"}`,
		"CanUpdateMachineSet": `"machineSetPatch":{"patchType":"JSONPatch","patch":"` + encode(`[{"op":"replace","path":"/spec/template/spec/version","value":"v1.33.4"}]`) + `"}`,
		"UpdateMachine":       `"retryAfterSeconds":3`,
	} {
		s.serve(hook, strings.ToLower(hook), handlerOptions{}, say(`{"kind":"`+hook+`Response","status":"Success",`+answer+`}`))
	}
	manifests := crdManifests(t)
	manifests["s.yaml"], manifests["policy.yaml"] = registration{name: "s", url: s.server.URL}.manifest(a), understands("s", "", "v1beta1")
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "ready--s")
	for front, call := range callers(g, g.dial(t)) {
		t.Run(front+" CanUpdateMachine", func(t *testing.T) {
			request := samples.Request("CanUpdateMachine").(*runtimehooksv1.CanUpdateMachineRequest)
			// v1beta1 has no place for this.
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
			checkChanges(t, current, patched, "spec.deletion.nodeDrainTimeoutSeconds: is 900, want 600", "spec.version: is v1.33.4, want v1.32.7")
		})
		t.Run(front+" CanUpdateMachineSet", func(t *testing.T) {
			body := samples.Body("CanUpdateMachineSet")
			answer := call(t, "CanUpdateMachineSet", "canupdatemachineset--s", body)
			seen := object(t, decodeMembers(t, s.last("CanUpdateMachineSet", "canupdatemachineset")), "desired", "machineSet")
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
	// What was lost on the way to the handler is counted for each of the two calls, and logged once.
	if want := `hookgate_conversion_lost_members_total{handler="canupdatemachine.s",hook="CanUpdateMachine"} 2`; !strings.Contains(g.metrics(t), want+"\n") {
		t.Errorf("the metrics have no %s", want)
	}
	if output, _ := g.output.read(); strings.Count(output, "machine.spec.minReadySeconds") != 1 {
		t.Errorf("the log does not have machine.spec.minReadySeconds once")
	}
}

// A caller that has v1beta1 Machines gets patches for such from an extension of today.
func TestPatchesForCallersInV1Beta1(t *testing.T) {
	program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "new", "0")
	manifests := crdManifests(t)
	manifests["new.yaml"], manifests["policy.yaml"] = registration{name: "new", url: e.url}.manifest(a), understands("new", "", "v1beta2")
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

// The extension of today reads behind a v1.12 what it reads behind a v1.14, but for what a v1.12 cannot say.
func TestNewExtensionBehindOldCore(t *testing.T) {
	program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "new", "0")
	settings := map[string]string{}
	for _, hook := range samples.Hooks() {
		settings[handlersOf(hook)[0]] = "echo"
	}
	manifests := crdManifests(t)
	manifests["new.yaml"], manifests["policy.yaml"] = registration{name: "new", url: e.url, settings: settings}.manifest(a), understands("new", "", "v1beta2")
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "patches--new")
	both := callers(g, g.dial(t))
	for _, hook := range samples.Hooks() {
		handler := handlersOf(hook)[0]
		// What both versions of Cluster API know of a Cluster, and what gets lost between them.
		cluster := fullCluster()
		cluster.Spec.Topology.ControlPlane.HealthCheck.Checks.UnhealthyMachineConditions =
			newerCluster().Spec.Topology.ControlPlane.HealthCheck.Checks.UnhealthyMachineConditions
		var lost []string
		if samples.Lifecycle(hook) {
			lost = []string{"cluster.spec.topology.controlPlane.healthCheck.checks.unhealthyMachineConditions: missing"}
		}
		want := decodedBy(t, direct(t, g.client, e.url, hook, handler, withSettings(requestWith(hook, cluster), settings)))
		sent := asOldCore(t, hook, samples.Marshal(requestWith(hook, cluster)))
		for front, call := range both {
			t.Run(front+" "+hook, func(t *testing.T) {
				got := decodedBy(t, call(t, hook, handler+".new", sent))
				if diff := cmp.Diff(lost, differences(generic(t, want), generic(t, got))); diff != "" {
					t.Errorf("behind v1.12 it differs from behind v1.14 by (-want +got):\n%s", diff)
				}
			})
		}
	}
	if output, _ := g.output.read(); strings.Contains(output, "conversion loses a member") {
		t.Error("the gateway says that it lost something")
	}
}
