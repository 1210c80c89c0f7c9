// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import "reflect"

// entryCost is what the entry of a map takes, in bytes, besides its value.
const entryCost = 64

// cost is what a value of the type takes, in bytes, without what it refers to.
func cost(t reflect.Type) int {
	n := int(t.Size())
	if t.Kind() == reflect.Pointer {
		n += cost(t.Elem())
	}
	return n
}
