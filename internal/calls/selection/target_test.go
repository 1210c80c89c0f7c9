// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"testing"

	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

func TestInOrderIsStable(t *testing.T) {
	orders := []*int32{nil, new(int32(3)), new(int32(-2)), nil, new(int32(3)), new(int32(0))}
	targets := make([]Target, len(orders))
	for i, o := range orders {
		targets[i].Entry = &registry.Entry{Policy: &policy.Policy{Order: o}}
	}
	targets[0].Entry.Policy = nil
	if got, want := InOrder(targets), []int{2, 5, 1, 4}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := InOrder(targets[:1]); got != nil {
		t.Errorf("without an order: got %v", got)
	}
}
