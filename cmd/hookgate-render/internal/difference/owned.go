// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// manager is the name with which Cluster API's topology controller applies objects.
const manager = "capi-topology"

// ownedBy returns the fields of an object that a manager has applied.
func ownedBy(o *unstructured.Unstructured, name string) (*fieldpath.Set, error) {
	owned := fieldpath.NewSet()
	for _, m := range o.GetManagedFields() {
		if m.Manager != name || m.Operation != metav1.ManagedFieldsOperationApply || m.FieldsV1 == nil {
			continue
		}
		var set fieldpath.Set
		if err := set.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("metadata.managedFields: %w", err)
		}
		owned = owned.Union(&set)
	}
	return owned, nil
}

// project returns what Cluster API has a say in of a live value: what it wants, and what it owns.
func project(live, wanted any, owned *fieldpath.Set) any {
	switch live := live.(type) {
	case map[string]any:
		asked, isObject := wanted.(map[string]any)
		if wanted != nil && !isObject {
			return live
		}
		kept := map[string]any{}
		for name, v := range live {
			element := fieldpath.PathElement{FieldName: &name}
			below := owned.WithPrefix(element)
			w, isWanted := asked[name]
			switch {
			case isWanted:
				kept[name] = project(v, w, below)
			case !below.Empty():
				kept[name] = project(v, nil, below)
			case owned.Members.Has(element):
				kept[name] = v
			}
		}
		return kept
	case []any:
		asked, _ := wanted.([]any)
		if len(asked) != len(live) {
			return live
		}
		kept := make([]any, len(live))
		for i := range live {
			kept[i] = project(live[i], asked[i], fieldpath.NewSet())
		}
		return kept
	}
	return live
}
