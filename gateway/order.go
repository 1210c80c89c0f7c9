// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"slices"

	"github.com/hookgate/hookgate/registry"
)

// hasOrder tells whether a policy wants the handler to be called before those without an order.
func hasOrder(e *registry.Entry) bool { return e.Policy != nil && e.Policy.Order != nil }

// inOrder returns the indexes of the entries that have an order, as they are to be called: lowest order first, and by name
// where it is the same, as the entries are. It is nil if none has.
func inOrder(entries []*registry.Entry) []int {
	var indexes []int
	for i, e := range entries {
		if hasOrder(e) {
			indexes = append(indexes, i)
		}
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return cmp.Compare(*entries[a].Policy.Order, *entries[b].Policy.Order) })
	return indexes
}

// ends tells whether the handlers that would be called after this one are not. A handler that holds its caller does not
// end anything: the others may have to be asked for the same state, and the least time counts.
func (r result) ends() bool {
	if r.err != nil {
		return true
	}
	_, refused := failed(r.response)
	return refused
}
