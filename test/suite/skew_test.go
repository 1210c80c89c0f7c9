// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"compress/gzip"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// startOld runs the v1.12 extension as ExtensionConfig "old", and a gateway with policies as manifests by file name.
func startOld(t *testing.T, policies map[string]string) *gateway {
	t.Helper()
	process.Program(t, gatewayVariable)
	process.Program(t, skewVariable)
	a := newAuthority(t)
	e := startOldExtension(t, a)
	manifests := crdManifests(t)
	manifests["old.yaml"] = registration{name: "old", url: e.url}.manifest(a)
	maps.Copy(manifests, policies)
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "discover-variables--old")
	return g
}

// oldPolicies returns the policies that the documentation recommends for an extension built for v1.12.
func oldPolicies() map[string]string {
	policies := map[string]string{"policy.yaml": understands("old", "", "v1beta1")}
	for _, hook := range []string{"GenerateUpgradePlan", "CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine"} {
		policies[hook+".yaml"] = understands("old", oldHandler(hook), "v1beta2")
	}
	return policies
}

// callers returns the two ways to call a handler; each returns the members of a successful answer.
func callers(g *gateway, conn *grpc.ClientConn) map[string]func(t *testing.T, hook, handler string,
	body []byte) members {
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

// decodedBy returns the request that an echoing extension decoded: the message, as JSON or compressed.
func decodedBy(t *testing.T, answer members) members {
	t.Helper()
	message, _ := answer["message"].(string)
	if answer["status"] != "Success" || message == "" {
		t.Fatalf("status %v, message %q", answer["status"], message)
	}
	if message[0] == '{' {
		return decodeMembers(t, []byte(message))
	}
	compressed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(message)))
	if err != nil {
		t.Fatalf("message %.100q: %v", message, err)
	}
	request, err := io.ReadAll(compressed)
	if err != nil {
		t.Fatalf("message %.100q: %v", message, err)
	}
	return decodeMembers(t, request)
}

// typed removes apiVersion and kind from an object and returns them.
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

// An extension built for v1.12 decodes the same members behind v1.14 as behind v1.12.
func TestSkewOldExtensionReadsWhatItAlwaysRead(t *testing.T) {
	g := startOld(t, oldPolicies())
	both := callers(g, g.dial(t))
	for _, hook := range samples.Hooks() {
		body := samples.Marshal(requestWith(hook, newerCluster()))
		want := decodeMembers(t, asOldCore(t, hook, body))
		for front, call := range both {
			t.Run(front+" "+hook, func(t *testing.T) {
				got := decodedBy(t, call(t, hook, oldHandler(hook)+".old", body))
				if samples.Lifecycle(hook) {
					// Core v1.12 leaves these two empty; the gateway fills them in.
					if apiVersion, kind := typed(t, got["cluster"]); apiVersion != "cluster.x-k8s.io/v1beta1" ||
						kind != "Cluster" {
						t.Errorf("the extension got a %v of %v", kind, apiVersion)
					}
				}
				if found := differences(generic(t, want), generic(t, got)); found != nil {
					t.Errorf("behind v1.14 it differs from behind v1.12:\n%s", strings.Join(found, "\n"))
				}
			})
		}
	}
	g.EndWell(t) // by then it has written its log
	if output := g.Output(); strings.Contains(output, "conversion loses a member") {
		t.Error("the gateway says that it lost something")
	}
}

// A reference of unknown version fails the call with advice, also under Ignore. The definition may be added while the
// gateway runs.
func TestSkewReferencesNeedDefinitions(t *testing.T) {
	const hook, handler = "BeforeClusterCreate", "before-cluster-create.old"
	process.Program(t, gatewayVariable)
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
	process.Eventually(t, "the call is made once the definition is there", func() bool {
		return g.post(t, path(hook, handler), samples.Body(hook)).code == http.StatusOK
	})
}

// Without a statement of what the extension understands, much of a Cluster does not reach it. The test above can find
// that.
func TestSkewOldExtensionWithoutPolicyMissesMembers(t *testing.T) {
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

// Callers other than Cluster API may send the status. Its shape differs in v1beta1, and the old types must be able to
// read it.
func TestSkewOldExtensionReadsStatus(t *testing.T) {
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

// Variables that an old extension discovers keep their metadata for callers of both versions.
func TestSkewOldExtensionsVariablesKeepTheirMetadata(t *testing.T) {
	const hook = "DiscoverVariables"
	metadata := map[string]any{"labels": map[string]any{"topic": "compute"},
		"annotations": map[string]any{"note": "größer <ist> besser"}}
	for name, tc := range map[string]struct {
		reason   string
		policies map[string]string
		newer    any
	}{
		"with the policy":    {"v1.14 reads it under its new name", oldPolicies(), metadata},
		"without the policy": {"without a statement, members are missing", nil, nil},
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
