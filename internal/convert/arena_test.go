// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// An arena that is used again gives no object what the one before had, whether their lists are longer or shorter.
func TestArenaForgets(t *testing.T) {
	s := schemaOf(reflect.TypeFor[clusterv1.Cluster]())
	a := newArenas(s).Get().(*arena)
	for _, n := range []int{3, 1, 0, 200, 2, 5} {
		for _, member := range []string{
			`"name":"a","value":1,"class":"c","replicas":2,"rollout":{"after":"2026-01-01T00:00:00Z"},"variables":{"overrides":[{"name":"x"},{"name":"y"}]}`,
			`"name":"b"`,
		} {
			elements := strings.TrimSuffix(strings.Repeat("{"+member+"},", n), ",")
			text := fmt.Appendf(nil, `{"spec":{"paused":true,"topology":{"variables":[%s],"workers":{"machineDeployments":[%s]}}}}`, elements, elements)
			var want clusterv1.Cluster
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			got, err := decodeObject(text, s, &meter{}, a)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got.value); diff != "" {
				t.Fatalf("%d elements %s (-encoding/json +convert):\n%s", n, member, diff)
			}
			a.release()
		}
	}
}

// A list in an arena has no room for more elements: what is appended to it must not be another list's.
func TestArenaKeepsListsApart(t *testing.T) {
	s := schemaOf(reflect.TypeFor[clusterv1.Cluster]())
	a := newArenas(s).Get().(*arena)
	text := []byte(`{"spec":{"topology":{"workers":{"machineDeployments":[
		{"variables":{"overrides":[{"name":"a"}]}},{"variables":{"overrides":[{"name":"b"},{"name":"c"}]}}]}}}}`)
	o, err := decodeObject(text, s, &meter{}, a)
	if err != nil {
		t.Fatal(err)
	}
	mds := o.value.(*clusterv1.Cluster).Spec.Topology.Workers.MachineDeployments
	mds[0].Variables.Overrides = append(mds[0].Variables.Overrides, clusterv1.ClusterVariable{Name: "d"})
	if got := mds[1].Variables.Overrides[0].Name; got != "b" {
		t.Errorf("the first element of the second list became %q", got)
	}
}
