// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"encoding/json"
	"reflect"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// capacityOf returns the first capacity that matches parameters; nil if none does.
func capacityOf(list []infrav1.MachineCapacity, resolved []byte) *infrav1.MachineCapacity {
	own := membersOfJSON(resolved)
	for i := range list {
		if contains(own, membersOfJSON(rawJSON(list[i].Parameters))) {
			return &list[i]
		}
	}
	return nil
}

// contains reports whether an object has all members of a part of one, with their values.
func contains(whole, part map[string]any) bool {
	for name, value := range part {
		have, ok := whole[name]
		if !ok {
			return false
		}
		inner, isObject := value.(map[string]any)
		if other, ok := have.(map[string]any); ok && isObject {
			if !contains(other, inner) {
				return false
			}
			continue
		}
		if !reflect.DeepEqual(have, value) {
			return false
		}
	}
	return true
}

// membersOfJSON returns the members of an object; none of what is no object.
func membersOfJSON(text []byte) map[string]any {
	var members map[string]any
	if json.Unmarshal(text, &members) != nil {
		return nil
	}
	return members
}
