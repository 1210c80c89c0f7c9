// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestProject leaves of a live object what is wanted, and what Cluster API's topology controller owns.
func TestProject(t *testing.T) {
	live := parse(t, `
metadata:
  managedFields:
  - manager: capi-topology
    operation: Apply
    fieldsV1: {"f:spec": {"f:wanted": {}, "f:owned": {}, "f:nested": {"f:owned": {}}, "f:list": {}}}
  - {manager: kubectl, operation: Update, fieldsV1: {"f:spec": {"f:edited": {}}}}
spec:
  wanted: 1
  owned: 2
  edited: 3
  defaulted: 4
  nested: {owned: 5, defaulted: 6}
  list: [{name: a, defaulted: 7}, {name: b}]
  longer: [1, 2]
`)
	owned, err := ownedBy(&unstructured.Unstructured{Object: live}, manager)
	if err != nil {
		t.Fatal(err)
	}
	wanted := parse(t, "spec: {wanted: 8, list: [{name: a}, {name: c}], longer: [1], new: 9}")
	want := parse(t, `
spec: {wanted: 1, owned: 2, nested: {owned: 5}, list: [{name: a}, {name: b}], longer: [1, 2]}
`)
	if diff := cmp.Diff(any(want), project(live, wanted, owned)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
