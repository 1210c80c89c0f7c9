// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"testing"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
)

// TestIdentityOf checks what each kind of request says about its Cluster, whose namespace and name are those of Cluster.
func TestIdentityOf(t *testing.T) {
	raw := func(text string) *hooksv1alpha1.RawExtension { return &hooksv1alpha1.RawExtension{Raw: []byte(text)} }
	const created = "2026-03-02T08:14:55Z"
	cluster := raw(`{"kind":"Cluster","metadata":{"name":"c","namespace":"n","uid":"1","creationTimestamp":"` + created + `"},"spec":{}}`)
	machine := raw(`{"metadata":{"name":"m","namespace":"n","uid":"2"},"spec":{"clusterName":"c"}}`)
	builtin := &hooksv1alpha1.Variable{Name: Builtin, Value: &hooksv1alpha1.JSON{
		Raw: []byte(`{"cluster":{"name":"c","namespace":"n","uid":"1","topology":{}}}`),
	}}
	whole, named := Identity{"n", "c", "1", created, false}, Identity{Namespace: "n", Name: "c"}
	gone, topology := whole, whole
	gone.Gone, topology.Created = true, ""
	for _, tt := range []struct {
		request proto.Message
		want    Identity
	}{
		{&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster}, whole},
		{&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: raw(`{"metadata":{"namespace":"n","n\u0061me":"c"}}`)}, named},
		{&hooksv1alpha1.GenerateUpgradePlanRequest{Cluster: cluster}, whole},
		{&hooksv1alpha1.GeneratePatchesRequest{Variables: []*hooksv1alpha1.Variable{{Name: "v"}, builtin}}, topology},
		{&hooksv1alpha1.ValidateTopologyRequest{Variables: []*hooksv1alpha1.Variable{builtin}}, topology},
		{&hooksv1alpha1.GeneratePatchesRequest{}, Identity{}},
		{&hooksv1alpha1.DiscoverVariablesRequest{}, Identity{}},
		{&hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: machine}}, named},
		{&hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{Machine: machine}}, named},
		{&machinesv1alpha1.BeforeMachineDrainRequest{Machine: machine, Cluster: cluster}, whole},
		{&machinesv1alpha1.BeforeMachineDrainRequest{Machine: machine}, named},
		{&machinesv1alpha1.AfterClusterDeleteRequest{Cluster: cluster}, gone},
		{&infrastructurev1alpha1.ReconcileClusterRequest{Subject: &infrastructurev1alpha1.Subject{Namespace: "n", ClusterName: "c", Cluster: cluster}}, whole},
		{&infrastructurev1alpha1.DeleteMachineRequest{Subject: &infrastructurev1alpha1.Subject{Namespace: "n", ClusterName: "c"}}, named},
	} {
		name := tt.request.ProtoReflect().Descriptor().Name()
		got := IdentityOf(tt.request)
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		if namespace, cluster := Cluster(tt.request); namespace != got.Namespace || cluster != got.Name {
			t.Errorf("%s: about Cluster %s/%s", name, namespace, cluster)
		}
	}
}
