// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
)

const clusters = "/apis/cluster.x-k8s.io/v1beta2/namespaces/team/clusters/"

func (s *apiServer) cluster(name string, labels map[string]string) {
	c := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster"}}
	c.Namespace, c.Name, c.Labels = "team", name, labels
	s.put(clusters+name, c)
}

// The labels of Clusters are read once an in-place chain needs them, and a replica that starts with one has them when it
// is ready.
func TestClusterLabels(t *testing.T) {
	api := newAPIServer(t)
	var mu sync.Mutex
	watched := 0
	api.watching(func(path string) {
		if strings.HasSuffix(path, "/clusters") {
			mu.Lock()
			watched++
			mu.Unlock()
		}
	})
	watches := func() int { mu.Lock(); defer mu.Unlock(); return watched }
	api.cluster("old", map[string]string{"disks": "local"})
	r := start(t, api, nil)
	api.chain("created", "a.acme")
	api.awaitReady(t, "created", v1alpha1.StepMissingReason, "")
	if _, known := r.source.ClusterLabels("team", "old"); known || watches() > 0 || r.source.ClusterGone("team", "old") {
		t.Errorf("without an in-place chain, a Cluster is known: %t; %d watches; or gone", known, watches())
	}

	api.change("created", func(c *v1alpha1.HandlerChainSpec) { c.Hook = "CanUpdateMachine" })
	awaitLabels := func(s *controllers.Source, name string, want map[string]string, known bool) {
		t.Helper()
		eventually(t, "labels of "+name, func() (string, bool) {
			got, ok := s.ClusterLabels("team", name)
			return fmt.Sprint(got, ok), ok == known && maps.Equal(got, want)
		})
	}
	awaitLabels(r.source, "old", map[string]string{"disks": "local"}, true)
	api.cluster("old", map[string]string{"disks": "far"})
	awaitLabels(r.source, "old", map[string]string{"disks": "far"}, true)
	api.cluster("none", nil)
	awaitLabels(r.source, "none", nil, true)
	api.remove(clusters + "none")
	awaitLabels(r.source, "none", nil, false)
	if !r.source.ClusterGone("team", "none") || r.source.ClusterGone("team", "old") {
		t.Error("the Cluster that was deleted is not gone, or the other one is")
	}
	r.stop()

	for range 10 {
		again := start(t, api, func(c *controllers.Config) { c.ReadOnly = true })
		if _, known := again.source.ClusterLabels("team", "old"); !known {
			t.Error("a replica is ready and does not know the Clusters that its chain selects by")
		}
		again.stop()
	}
}
