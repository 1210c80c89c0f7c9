// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/samples"
)

// sampleCluster returns the Cluster of v1beta2 of the benchmarks' small request, about 4 kB.
func sampleCluster(tb testing.TB) []byte {
	tb.Helper()
	var request struct{ Cluster json.RawMessage }
	if err := json.Unmarshal(samples.S(), &request); err != nil {
		tb.Fatal(err)
	}
	return request.Cluster
}

// sampleObjects knows the kinds that the samples refer to.
func sampleObjects() *Objects {
	refs := NewReferences()
	refs.Set([]CRD{
		{Name: "awsclusters.infrastructure.cluster.x-k8s.io",
			Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta2"}},
		{Name: "awsmachines.infrastructure.cluster.x-k8s.io",
			Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta2"}},
		{Name: "awsmachinetemplates.infrastructure.cluster.x-k8s.io",
			Labels: map[string]string{"cluster.x-k8s.io/v1beta1": "v1beta2"}},
	})
	return NewObjects(refs)
}

func BenchmarkRequest(b *testing.B) {
	o := sampleObjects()
	hub := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: sampleCluster(b)}}
	down, err := o.Request(hub, V1Beta1)
	if err != nil {
		b.Fatal(err)
	}
	old := down.Message.(*hooksv1alpha1.BeforeClusterCreateRequest)
	for name, bench := range map[string]struct {
		req *hooksv1alpha1.BeforeClusterCreateRequest
		to  string
	}{
		"down": {hub, V1Beta1}, "up": {old, V1Beta2}, "none": {hub, V1Beta2}, "unstated": {hub, ""},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(bench.req.Cluster.Raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.Request(bench.req, bench.to); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
