// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

func raw(object string) *hooksv1alpha1.RawExtension {
	return &hooksv1alpha1.RawExtension{Raw: []byte(object)}
}

// parsed decodes JSON with its numbers as they are written.
func parsed(tb testing.TB, b []byte) any {
	tb.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		tb.Fatalf("%v in %s", err, b)
	}
	return v
}

func TestObjects(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		kind   string // of the member; "Cluster" unless it is set
		to     string
		want   string // "" if the object is to be left alone
		losses []string
	}{
		"down": {
			reason: "renamed members, durations, and what v1beta1 always writes",
			to:     V1Beta1,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"a","namespace":"n"},"spec":{"topology":{
				"classRef":{"name":"c","namespace":"cn"},"version":"v1.33.0","controlPlane":{"deletion":{"nodeDrainTimeoutSeconds":90},
				"healthCheck":{"remediation":{"templateRef":{"kind":"T","name":"t","apiVersion":"x.io/v1"}}}}}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"name":"a","namespace":"n"},"spec":{
				"controlPlaneEndpoint":{"host":"","port":0},"topology":{
				"class":"c","classNamespace":"cn","version":"v1.33.0","controlPlane":{"metadata":{},"nodeDrainTimeout":"1m30s",
				"machineHealthCheck":{"remediationTemplate":{"kind":"T","name":"t","namespace":"n","apiVersion":"x.io/v1"}}}}},
				"status":{"infrastructureReady":false,"controlPlaneReady":false}}`,
		},
		"references down": {
			reason: "references get version and namespace back",
			to:     V1Beta1,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"n"},"spec":{
				"controlPlaneRef":{"apiGroup":"controlplane.cluster.x-k8s.io","kind":"KubeadmControlPlane","name":"cp"},
				"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"AWSCluster","name":"i"}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"namespace":"n"},"spec":{
				"controlPlaneEndpoint":{"host":"","port":0},
				"controlPlaneRef":{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta2","kind":"KubeadmControlPlane","namespace":"n","name":"cp"},
				"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"AWSCluster","namespace":"n","name":"i"}},
				"status":{"infrastructureReady":false,"controlPlaneReady":false}}`,
		},
		"up with losses": {
			reason: "what v1beta2 cannot express is listed, by path without indices, each once",
			to:     V1Beta2,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"namespace":"n"},"spec":{"paused":true,
				"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1alpha9","kind":"AWSCluster","namespace":"other","name":"i"},
				"controlPlaneRef":{"apiVersion":"unknown.io/v1","kind":"CP","namespace":"n","name":"cp"},
				"topology":{"class":"c","version":"v1","variables":[{"name":"a","value":12345678901234567890.10,"definitionFrom":"p"},
				{"name":"b","value":{"x":null},"definitionFrom":"q"},{"name":"c","value":null}],
				"controlPlane":{"nodeDrainTimeout":"1.5s"}}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"n"},"spec":{"paused":true,
				"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"AWSCluster","name":"i"},
				"controlPlaneRef":{"apiGroup":"unknown.io","kind":"CP","name":"cp"},
				"topology":{"classRef":{"name":"c"},"version":"v1","controlPlane":{"deletion":{"nodeDrainTimeoutSeconds":1}},
				"variables":[{"name":"a","value":12345678901234567890.10},{"name":"b","value":{"x":null}},{"name":"c"}]}}}`,
			losses: []string{
				"cluster.spec.controlPlaneRef.apiVersion", "cluster.spec.infrastructureRef.apiVersion", "cluster.spec.infrastructureRef.namespace",
				"cluster.spec.topology.controlPlane.nodeDrainTimeout", "cluster.spec.topology.variables[*].definitionFrom",
			},
		},
		"unknown members": {
			reason: "they survive where the place is the same thing, also where nothing else is in it; the others are losses",
			to:     V1Beta1,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","top":1e400,"metadata":{"namespace":"n","future":{"a":[1]}},"spec":{
				"new":[0.10],"Paused":true,"topology":{"rollout":{"a":1},"class":"another","workers":{"machineDeployments":[
				{"class":"a","name":"md-0"},{"class":"b","name":"md-1","new":{"deep":"\u00e9"},"healthCheck":{"new":1}}]},
				"controlPlane":{"rollout":{"new":1}}},"infrastructureRef":{"kind":"AWSCluster","apiGroup":"infrastructure.cluster.x-k8s.io","new":"x"}},
				"status":{"conditions":[{"type":"T","status":"True","reason":"","message":"","lastTransitionTime":"2026-01-01T00:00:00Z","new":1}]}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","top":1e400,"metadata":{"namespace":"n","future":{"a":[1]}},"spec":{
				"controlPlaneEndpoint":{"host":"","port":0},"new":[0.10],"Paused":true,"topology":{"class":"","version":"","rollout":{"a":1},"workers":{"machineDeployments":[
				{"class":"a","name":"md-0","metadata":{}},{"class":"b","name":"md-1","metadata":{},"new":{"deep":"\u00e9"}}]},
				"controlPlane":{"metadata":{},"rollout":{"new":1}}},"infrastructureRef":{"kind":"AWSCluster","namespace":"n","apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","new":"x"}},
				"status":{"infrastructureReady":false,"controlPlaneReady":false,"v1beta2":{"conditions":[
				{"type":"T","status":"True","reason":"","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}}`,
			losses: []string{
				"cluster.spec.topology.class", "cluster.spec.topology.workers.machineDeployments[*].healthCheck.new",
				"cluster.status.conditions[*].new",
			},
		},
		"pinned workers down": {
			reason: "the versions of workers, which Cluster API v1.15 adds, survive",
			to:     V1Beta1,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"n"},"spec":{"topology":{
				"classRef":{"name":"c"},"version":"v1.36.0","workers":{"machineDeployments":[{"class":"a","name":"md-0"},
				{"class":"a","name":"md-1","version":"v1.35.0"}],"machinePools":[{"class":"b","name":"mp-0","version":"v1.34.0"}]}}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"namespace":"n"},"spec":{
				"controlPlaneEndpoint":{"host":"","port":0},"topology":{"class":"c","version":"v1.36.0","controlPlane":{"metadata":{}},
				"workers":{"machineDeployments":[{"class":"a","name":"md-0","metadata":{}},
				{"class":"a","name":"md-1","metadata":{},"version":"v1.35.0"}],
				"machinePools":[{"class":"b","name":"mp-0","metadata":{},"version":"v1.34.0"}]}}},
				"status":{"infrastructureReady":false,"controlPlaneReady":false}}`,
		},
		"pinned workers up": {
			reason: "in both directions",
			to:     V1Beta2,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"namespace":"n"},"spec":{"topology":{
				"class":"c","version":"v1.36.0","workers":{"machineDeployments":[{"class":"a","name":"md-0"},
				{"class":"a","name":"md-1","version":"v1.35.0"}],"machinePools":[{"class":"b","name":"mp-0","version":"v1.34.0"}]}}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"n"},"spec":{"topology":{
				"classRef":{"name":"c"},"version":"v1.36.0","workers":{"machineDeployments":[{"class":"a","name":"md-0"},
				{"class":"a","name":"md-1","version":"v1.35.0"}],"machinePools":[{"class":"b","name":"mp-0","version":"v1.34.0"}]}}}}`,
		},
		"annotation down": {
			reason: "Cluster API has no conversion data in requests of hooks",
			to:     V1Beta1,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"annotations":{"a":"b" , "cluster.x-k8s.io/conversion-data":"{}","c":"d"}}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Cluster","metadata":{"annotations":{"a":"b","c":"d"}},
				"spec":{"controlPlaneEndpoint":{"host":"","port":0}},"status":{"infrastructureReady":false,"controlPlaneReady":false}}`,
		},
		"annotation up": {
			reason: "what Cluster API's own converter kept for the way back is used, as it uses it",
			kind:   "Machine",
			to:     V1Beta2,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta1","kind":"Machine","metadata":{"annotations":{
				"cluster.x-k8s.io\/conversion-data" : "{\"spec\":{\"minReadySeconds\":5},\"status\":{\"phase\":\"Updating\",\"failureDomain\":\"f\",\"initialization\":{\"infrastructureProvisioned\":false}}}" , "a":"b"}},
				"spec":{"clusterName":"c"},"status":{"phase":"Running"}}`,
			want: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"annotations":{"a":"b"}},
				"spec":{"clusterName":"c","minReadySeconds":5},"status":{"phase":"Updating","failureDomain":"f","initialization":{"infrastructureProvisioned":false}}}`,
		},
		"Machine down": {
			reason: "the versions that a Machine refers to",
			kind:   "Machine",
			to:     V1Beta1,
			object: `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"namespace":"n"},"spec":{"clusterName":"c","minReadySeconds":3,
				"bootstrap":{"configRef":{"apiGroup":"bootstrap.cluster.x-k8s.io","kind":"KubeadmConfig","name":"b"}},
				"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"AWSMachine","name":"i"}},"status":{"phase":"Updating"}}`,
			want: `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"namespace":"n"},"spec":{"clusterName":"c",
				"bootstrap":{"configRef":{"apiVersion":"bootstrap.cluster.x-k8s.io/v1beta2","kind":"KubeadmConfig","namespace":"n","name":"b"}},
				"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"AWSMachine","namespace":"n","name":"i"}},
				"status":{"phase":"Running","bootstrapReady":false,"infrastructureReady":false}}`,
			losses: []string{"machine.spec.minReadySeconds", "machine.status.phase"},
		},
		"MachineSet down": {
			reason: "minReadySeconds moves out of the template",
			kind:   "MachineSet",
			to:     V1Beta1,
			object: `{"kind":"MachineSet","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"clusterName":"c","selector":{"matchLabels":{"a":"b"}},
				"deletion":{"order":"Oldest"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"minReadySeconds":3}}}}`,
			want: `{"kind":"MachineSet","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"clusterName":"c","selector":{"matchLabels":{"a":"b"}},
				"deletePolicy":"Oldest","minReadySeconds":3,"template":{"metadata":{"labels":{"a":"b"}},"spec":{"clusterName":"","bootstrap":{},"infrastructureRef":{}}}},
				"status":{"replicas":0,"fullyLabeledReplicas":0,"readyReplicas":0,"availableReplicas":0}}`,
		},
		"MachinePool down": {
			reason: "minReadySeconds moves out of the template, and references get a version",
			kind:   "MachinePool",
			to:     V1Beta1,
			object: `{"kind":"MachinePool","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"namespace":"n"},"spec":{"clusterName":"c","replicas":3,
				"providerIDList":["acme://1"],"failureDomains":["a"],"template":{"spec":{"clusterName":"c","minReadySeconds":0,
				"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"DevMachinePool","name":"i"}}}},
				"status":{"initialization":{"infrastructureProvisioned":true}}}`,
			want: `{"kind":"MachinePool","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"namespace":"n"},"spec":{"clusterName":"c","replicas":3,
				"minReadySeconds":0,"providerIDList":["acme://1"],"failureDomains":["a"],"template":{"metadata":{},"spec":{"clusterName":"c","bootstrap":{},
				"infrastructureRef":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"DevMachinePool","namespace":"n","name":"i"}}}},
				"status":{"replicas":0,"bootstrapReady":false,"infrastructureReady":true}}`,
		},
		"MachinePool up": {
			reason: "what was false or not set is not known to be false",
			kind:   "MachinePool",
			to:     V1Beta2,
			object: `{"kind":"MachinePool","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"clusterName":"c","minReadySeconds":7,
				"template":{"spec":{"clusterName":"c","nodeDrainTimeout":"90s"}}},"status":{"bootstrapReady":true}}`,
			want: `{"kind":"MachinePool","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"clusterName":"c",
				"template":{"spec":{"clusterName":"c","minReadySeconds":7,"deletion":{"nodeDrainTimeoutSeconds":90}}}},
				"status":{"replicas":0,"deprecated":{"v1beta1":{}},"initialization":{"bootstrapDataSecretCreated":true}}}`,
		},
		"failure domains": {
			reason: "a list whose order says nothing becomes a map, and comes back in another order",
			to:     V1Beta1,
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","status":{"failureDomains":[{"name":"b","controlPlane":true},{"name":"a"}]}}`,
			want: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"controlPlaneEndpoint":{"host":"","port":0}},"status":{
				"failureDomains":{"a":{},"b":{"controlPlane":true}},"infrastructureReady":false,"controlPlaneReady":false}}`,
		},
		"failure domains of one name": {
			reason: "a map has one of each name",
			to:     V1Beta1,
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","status":{"failureDomains":[{"name":"a","controlPlane":true},{"name":"a"}]}}`,
			want: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"controlPlaneEndpoint":{"host":"","port":0}},"status":{
				"failureDomains":{"a":{}},"infrastructureReady":false,"controlPlaneReady":false}}`,
			losses: []string{"cluster.status.failureDomains"},
		},
		"conditions of both ages": {
			reason: "at one path there are the old ones in v1beta1, and the new ones in v1beta2",
			to:     V1Beta1,
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","status":{
				"conditions":[{"type":"N","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z","new":1}],
				"deprecated":{"v1beta1":{"conditions":[{"type":"O","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z","new":2}]}}}}`,
			want: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"controlPlaneEndpoint":{"host":"","port":0}},"status":{
				"conditions":[{"type":"O","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}],
				"v1beta2":{"conditions":[{"type":"N","status":"True","reason":"R","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]},
				"infrastructureReady":false,"controlPlaneReady":false}}`,
			losses: []string{"cluster.status.conditions[*].new", "cluster.status.deprecated.v1beta1.conditions[*].new"},
		},
		"as v1.12 sends it": {
			reason: "Cluster API v1.12 sets neither kind nor apiVersion in lifecycle hooks",
			to:     V1Beta2,
			object: `{"metadata":{"name":"a","creationTimestamp":null},"spec":{"topology":{"class":"c","version":"v1"}},"status":{"infrastructureReady":false,"controlPlaneReady":false}}`,
			want:   `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"name":"a","creationTimestamp":null},"spec":{"topology":{"classRef":{"name":"c"},"version":"v1"}}}`,
		},
		"as v1.12 sends it, for v1beta1": {
			reason: "it is what the handler understands", to: V1Beta1, object: `{"metadata":{"name":"a"}}`,
		},
		"numbers at the limits": {
			reason: "the largest and the smallest that there are",
			to:     V1Beta1,
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"controlPlaneEndpoint":{"host":"h","port":2147483647}},
				"status":{"observedGeneration":9223372036854775807,"controlPlane":{"replicas":-2147483648}}}`,
			want: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"controlPlaneEndpoint":{"host":"h","port":2147483647}},
				"status":{"observedGeneration":9223372036854775807,"infrastructureReady":false,"controlPlaneReady":false,"v1beta2":{"controlPlane":{"replicas":-2147483648}}}}`,
		},
		"nulls": {
			reason: "null is as good as absent, everywhere",
			to:     V1Beta2,
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"namespace":null,"annotations":null},"spec":{"paused":null,
				"controlPlaneEndpoint":null,"clusterNetwork":{"pods":null},"topology":{"class":null,"workers":{"machineDeployments":[null]},"variables":[]}},"status":null}`,
			want: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"namespace":null,"annotations":null},"spec":{
				"topology":{"workers":{"machineDeployments":[{}]}}}}`,
		},
		"null metadata": {
			reason: "it is left out",
			to:     V1Beta2,
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":null,"spec":null}`,
			want:   `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2"}`,
		},
		"escaped names": {
			reason: "names may be escaped in any way, also in the header and the metadata",
			to:     V1Beta2,
			object: `{"kind":"\u0043luster","apiVersion":"cluster.x-k8s.io\/v1beta1","\u006detadata":{"name\u0073pace":"n"},"sp\u0065c":{"\u0070aused":true,
				"n\u0065w":"\ud800"}}`,
			want: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","metadata":{"namespace":"n"},"spec":{"paused":true,"new":"\ud800"}}`,
		},
		"same version of another kind": {reason: "nothing is converted, and so nothing is checked", to: V1Beta2,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine"}`},
		"same version, no kind": {reason: "nothing is converted, and so nothing is checked", to: V1Beta2,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2"}`},
		"same version": {reason: "no conversion, no look inside", to: V1Beta2,
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","spec":5}`},
		"nothing stated": {reason: "the handler states no version", to: "",
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster"}`},
		"empty": {reason: "a hook without an object", to: V1Beta1, object: ``},
		"null":  {reason: "a hook without an object", to: V1Beta1, object: ` null`},
		"same version, kind after spec": {reason: "members come in any order", to: V1Beta2,
			object: `{"spec":{"kind":"x"},"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var req proto.Message = &hooksv1alpha1.BeforeClusterCreateRequest{Handler: "h", Cluster: raw(tc.object)}
			get := func(m proto.Message) []byte { return m.(*hooksv1alpha1.BeforeClusterCreateRequest).Cluster.Raw }
			switch tc.kind {
			case "Machine":
				req = &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: raw(tc.object)}}
				get = func(m proto.Message) []byte { return m.(*hooksv1alpha1.UpdateMachineRequest).Desired.Machine.Raw }
			case "MachineSet":
				req = &hooksv1alpha1.CanUpdateMachineSetRequest{Desired: &hooksv1alpha1.CanUpdateMachineSetRequestObjects{MachineSet: raw(tc.object)}}
				get = func(m proto.Message) []byte {
					return m.(*hooksv1alpha1.CanUpdateMachineSetRequest).Desired.MachineSet.Raw
				}
			case "MachinePool":
				req, get = requestWith([]byte(tc.object), 3)
			}
			before := proto.Clone(req)
			c, err := sampleObjects().Request(req, tc.to)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(before, req, protocmp.Transform()); diff != "" {
				t.Errorf("the request was changed:\n%s", diff)
			}
			if tc.want == "" {
				if c.Message != req {
					t.Errorf("%s: the message is another one: %s", tc.reason, get(c.Message))
				}
				return
			}
			if diff := cmp.Diff(parsed(t, []byte(tc.want)), parsed(t, get(c.Message))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.losses, c.Losses); diff != "" {
				t.Errorf("%s: losses (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestObjectErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		hook   string // "BeforeClusterCreate" unless it is set
		to     string
		kind   hook.Kind
		want   string
	}{
		"unknown older version": {
			reason: "v1alpha4 is gone from Cluster API",
			object: `{"apiVersion":"cluster.x-k8s.io/v1alpha4","kind":"Cluster"}`, to: V1Beta1, kind: hook.Conversion,
			want: `convert cluster to v1beta1: the object has version v1alpha4, but only versions v1beta1 and v1beta2 of group cluster.x-k8s.io can be converted`,
		},
		"unknown newer version": {
			reason: "a Cluster API that is newer than this program",
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta3","kind":"Cluster"}`, to: V1Beta2, kind: hook.Conversion,
			want: `convert cluster to v1beta2: the object has version v1beta3, but only versions v1beta1 and v1beta2 of group cluster.x-k8s.io can be converted`,
		},
		"unknown version of the handler": {
			reason: "policies are checked before, gRPC extensions say what they like",
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster"}`, to: "v1", kind: hook.Conversion,
			want: `convert the request: version "v1" of cluster.x-k8s.io, which is stated for the handler, does not exist; state v1beta1 or v1beta2`,
		},
		"no apiVersion": {
			reason: "a kind without a version is nothing that Cluster API sends",
			object: `{"kind":"Cluster"}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: the object has no apiVersion`,
		},
		"no apiVersion where v1.12 sends one": {
			reason: "only lifecycle hooks have Clusters without it",
			object: `{}`, hook: "GenerateUpgradePlan", to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: the object has no apiVersion`,
		},
		"no kind": {
			reason: "a version without a kind is nothing that Cluster API sends",
			object: `{"apiVersion":"cluster.x-k8s.io/v1beta1"}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: its kind is "", not Cluster`,
		},
		"null apiVersion": {
			reason: "nothing to convert", object: `{"kind":"Cluster","apiVersion":null}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: apiVersion is not a string`,
		},
		"only an apiVersion where v1.12 sends none": {
			reason: "an object that says one of both is not one of v1.12", object: `{"kind":"Cluster"}`, to: V1Beta1, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta1: the object has no apiVersion`,
		},
		"version of no group": {
			reason: "versions of the core group say nothing",
			object: `{"kind":"Cluster","apiVersion":"v1beta1"}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: its apiVersion is "v1beta1", not one of group cluster.x-k8s.io`,
		},
		"a version that is no name": {
			reason: "it is not quoted in full",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1/x y"}`, to: V1Beta2, kind: hook.Conversion,
			want: `convert cluster to v1beta2: the object has version [*], but only versions v1beta1 and v1beta2 of group cluster.x-k8s.io can be converted`,
		},
		"a text": {
			reason: "nothing to convert", object: `"a"`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not an object`,
		},
		"metadata that is a list": {
			reason: "no version has that", object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":[]}`,
			to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: metadata is not an object`,
		},
		"a namespace that is a number": {
			reason: "no version has that", object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"namespace":1}}`,
			to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: metadata.namespace is not a string`,
		},
		"conversion data that is a number": {
			reason: "no version has that",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"annotations":{"cluster.x-k8s.io/conversion-data":1}}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: metadata.annotations[*] is not a string`,
		},
		"a whole number with a fraction": {
			reason: "encoding/json refuses it too",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"controlPlaneEndpoint":{"port":1.0}}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: spec.controlPlaneEndpoint.port is not a 32-bit integer`,
		},
		"a whole number with an exponent": {
			reason: "encoding/json refuses it too",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"controlPlaneEndpoint":{"port":1e1}}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: spec.controlPlaneEndpoint.port is not a 32-bit integer`,
		},
		"a number of 64 bits that is too large": {
			reason: "it would be another one",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","status":{"observedGeneration":9223372036854775808}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: status.observedGeneration is not a 64-bit integer`,
		},
		"another kind": {
			reason: "it would be read as something that it is not",
			object: `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta1"}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: its kind is "Machine", not Cluster`,
		},
		"another group": {
			reason: "versions of other groups say nothing",
			object: `{"kind":"Cluster","apiVersion":"acme.io/v1beta1"}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: its apiVersion is "acme.io/v1beta1", not one of group cluster.x-k8s.io`,
		},
		"not an object": {
			reason: "nothing to convert", object: `[]`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not an object`,
		},
		"apiVersion that is no string": {
			reason: "nothing to convert", object: `{"apiVersion":1}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: apiVersion is not a string`,
		},
		"a member of another type": {
			reason: "the path says where",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"topology":{"workers":{"machineDeployments":[{"replicas":"3"}]}}}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: spec.topology.workers.machineDeployments[*].replicas is not a number`,
		},
		"a number that is too large": {
			reason: "it would be another one",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"controlPlaneEndpoint":{"port":2147483648}}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: spec.controlPlaneEndpoint.port is not a 32-bit integer`,
		},
		"not JSON": {
			reason: "gRPC callers can send any bytes",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"labels":{"a":"b",}}}`, to: V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: it is not a Cluster of v1beta1: invalid JSON at byte 88: unexpected '}', want a member name`,
		},
		"a reference to nothing known": {
			reason: "the text says what to do",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"infrastructureRef":{"apiGroup":"acme.io","kind":"Acme","name":"a"}}}`,
			to:     V1Beta1, kind: hook.Conversion,
			want: `convert cluster from v1beta2 to v1beta1: spec.infrastructureRef: cannot look up the version of kind "Acme" in group "acme.io": install the ` +
				`CustomResourceDefinition "acmes.acme.io" in the cluster, or add its manifest to the directory of ExtensionConfigs`,
		},
		"a reference with another form": {
			reason: "Cluster API refuses it too",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"infrastructureRef":{"apiVersion":"a/b/c"}}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster from v1beta1 to v1beta2: spec.infrastructureRef.apiVersion is "a/b/c", which is not of the form group/version`,
		},
		"conversion data that is none": {
			reason: "Cluster API refuses it too",
			object: `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"annotations":{"cluster.x-k8s.io/conversion-data":"["}}}`,
			to:     V1Beta2, kind: hook.InvalidRequest,
			want: `convert cluster to v1beta2: its annotation cluster.x-k8s.io/conversion-data is not a Cluster of v1beta2: invalid JSON at byte 0: unexpected '[', want an object`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var req proto.Message = &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(tc.object)}
			if tc.hook != "" {
				req = &hooksv1alpha1.GenerateUpgradePlanRequest{Cluster: raw(tc.object)}
			}
			_, err := sampleObjects().Request(req, tc.to)
			var e *hook.Error
			if !errors.As(err, &e) || e.Kind != tc.kind || err.Error() != tc.want {
				t.Errorf("%s:\n got %v (%v)\nwant %s (%v)", tc.reason, err, hook.KindOf(err), tc.want, tc.kind)
			}
		})
	}
}

// Every request of both groups is either known to have objects, or has none.
func TestSpots(t *testing.T) {
	want := map[string][]string{
		"CanUpdateMachine":       {"current.machine", "desired.machine"},
		"CanUpdateMachineSet":    {"current.machineSet", "desired.machineSet"},
		"UpdateMachine":          {"desired.machine"},
		"GenerateUpgradePlan":    {"cluster"},
		"DiscoverInfrastructure": nil,
		"Discovery":              nil, "DiscoverVariables": nil, "GeneratePatches": nil, "ValidateTopology": nil,
	}
	o := NewObjects(NewReferences())
	hooks, err := catalog.With(catalog.Infrastructure()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hooks.Hooks() {
		l := o.layoutOf(h.Request.Descriptor())
		var got []string
		for _, s := range l.spots {
			got = append(got, s.at)
		}
		expected, unstated := want[h.Hook], ""
		if h.Category == catalog.Lifecycle {
			expected, unstated = []string{"cluster"}, V1Beta1
		}
		if h.Group == hook.InfrastructureGroup && !h.Singleton() {
			expected = []string{"subject.cluster", "subject.machine", "subject.machinePool"}
		}
		if !slices.Equal(got, expected) || l.unstated != unstated {
			t.Errorf("%s: objects at %v of version %q, want %v, %q", h.Hook, got, l.unstated, expected, unstated)
		}
	}
}

// The objects of a subject are converted together, and nothing else of it is changed.
func TestSubject(t *testing.T) {
	subject := &infrastructurev1alpha1.Subject{
		ExternalId: "m1", Parameters: &hooksv1alpha1.JSON{Raw: []byte(`{"kind":"Cluster"}`)},
		Cluster:        raw(`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"paused":true}}`),
		Machine:        raw(`{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"clusterName":"c","minReadySeconds":3}}`),
		UnknownMembers: map[string]*hooksv1alpha1.JSON{"cluster2": {Raw: []byte(`{"kind":"Cluster"}`)}},
	}
	req := &infrastructurev1alpha1.ReconcileMachineRequest{Handler: "h", Subject: subject, Version: "v1.34.0"}
	before := proto.Clone(req)
	c, err := sampleObjects().Request(req, V1Beta1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, req, protocmp.Transform()); diff != "" {
		t.Errorf("the request was changed:\n%s", diff)
	}
	got := proto.CloneOf(c.Message.(*infrastructurev1alpha1.ReconcileMachineRequest))
	for name, object := range map[string]*hooksv1alpha1.RawExtension{"Cluster": got.Subject.Cluster, "Machine": got.Subject.Machine} {
		if v := parsed(t, object.GetRaw()).(map[string]any); v["kind"] != name || v["apiVersion"] != "cluster.x-k8s.io/v1beta1" {
			t.Errorf("the %s is %s", name, object.GetRaw())
		}
	}
	if want := []string{"machine.spec.minReadySeconds"}; !slices.Equal(c.Losses, want) {
		t.Errorf("losses %v, want %v", c.Losses, want)
	}
	got.Subject.Cluster, got.Subject.Machine = subject.Cluster, subject.Machine
	if diff := cmp.Diff(before, proto.Message(got), protocmp.Transform()); diff != "" {
		t.Errorf("something else differs:\n%s", diff)
	}
	answer := &infrastructurev1alpha1.ReconcileMachineResponse{ProviderId: "acme://m1"}
	if back, losses, err := c.Response(answer); back != proto.Message(answer) || losses != nil || err != nil {
		t.Errorf("the answer became %v, %v, %v", back, losses, err)
	}
}

// The new message shares everything with the request that was not converted.
func TestSharing(t *testing.T) {
	machine := `{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2"}`
	req := &hooksv1alpha1.CanUpdateMachineRequest{
		Handler: "h", Settings: map[string]string{"a": "b"},
		Current:        &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: raw(machine), BootstrapConfig: raw(`{"kind":"B"}`), UnknownMembers: map[string]*hooksv1alpha1.JSON{"x": {Raw: []byte("1")}}},
		Desired:        &hooksv1alpha1.CanUpdateMachineRequestObjects{InfrastructureMachine: raw(`{"kind":"I"}`)},
		UnknownMembers: map[string]*hooksv1alpha1.JSON{"y": {Raw: []byte("2")}},
	}
	c, err := sampleObjects().Request(req, V1Beta1)
	if err != nil {
		t.Fatal(err)
	}
	got := c.Message.(*hooksv1alpha1.CanUpdateMachineRequest)
	if got == req || got.Current == req.Current ||
		!bytes.Contains(got.Current.Machine.Raw, []byte(`cluster.x-k8s.io/v1beta1`)) {
		t.Fatalf("not converted: %v", got)
	}
	if got.Desired != req.Desired || got.Current.BootstrapConfig != req.Current.BootstrapConfig {
		t.Error("what was not converted was copied")
	}
	got.Current.Machine, req.Current.Machine = nil, nil
	if diff := cmp.Diff(req, got, protocmp.Transform()); diff != "" {
		t.Errorf("something else differs:\n%s", diff)
	}
}

// One Objects serves concurrent calls while definitions are replaced; the race detector checks this.
func TestConcurrentRequests(t *testing.T) {
	o := sampleObjects()
	object := sampleCluster(t)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() {
			for range 20 {
				c, err := o.Request(&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(string(object))}, V1Beta1)
				if err != nil {
					t.Error(err)
					return
				}
				if _, err = o.Request(c.Message, V1Beta2); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		o.refs.Set([]CRD{{Name: "awsclusters.infrastructure.cluster.x-k8s.io",
			Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"}}})
	}
	calls.Wait()
}

// Lossy lists what a conversion can lose.
func TestLossy(t *testing.T) {
	for _, k := range kinds() {
		for _, d := range [][2]string{{V1Beta1, V1Beta2}, {V1Beta2, V1Beta1}} {
			list := Lossy(k.name, d[0], d[1])
			if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("%s %v: not sorted, or not unique: %v", k.name, d, list)
			}
			for _, path := range list {
				if !strings.HasPrefix(path, k.path+".") {
					t.Errorf("%s %v: path %q", k.name, d, path)
				}
			}
		}
	}
	want := []string{"machine.spec.minReadySeconds", "machine.status.failureDomain", "machine.status.phase"}
	if got := Lossy("Machine", V1Beta2, V1Beta1); !slices.Equal(got, want) {
		t.Errorf("Machine down: %v, want %v", got, want)
	}
	if got := Lossy("Cluster", V1Beta2, V1Beta1); len(got) > 0 {
		t.Errorf("Cluster down: %v, want nothing", got)
	}
	if got := Lossy("Cluster", V1Beta1, V1Beta2); !slices.Contains(got,
		"cluster.spec.topology.variables[*].definitionFrom") {
		t.Errorf("Cluster up: definitionFrom is not in %v", got)
	}
	for _, none := range [][3]string{{"Cluster", V1Beta1, V1Beta1}, {"Cluster", "v1alpha4", V1Beta1},
		{"MachineDeployment", V1Beta1, V1Beta2}, {"Cluster", V1Beta1, ""}} {
		if got := Lossy(none[0], none[1], none[2]); got != nil {
			t.Errorf("%v: %v, want nil", none, got)
		}
	}
}
