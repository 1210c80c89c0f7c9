// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

// callAll calls the handlers that a policy gives an order one after the other, until one fails, and then all others at
// the same time. It waits for all of them, so that the merged answer does not depend on timing.
func (d *Dispatcher) callAll(ctx context.Context, r Request, targets []target) []outcome.Answer {
	answers := make([]outcome.Answer, len(targets))
	ordered := inOrder(targets)
	if len(ordered) > 0 {
		// A sequence of handlers may take no longer than a single handler.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limits.Timeout)
		defer cancel()
	}
	for _, i := range ordered {
		answers[i].Response, answers[i].Err = d.call(ctx, r, targets[i])
		if answers[i].Failed() {
			return answers
		}
	}
	d.callUnordered(ctx, r, targets, answers)
	return answers
}

// callUnordered calls the handlers without an order at the same time, one of them in this goroutine.
func (d *Dispatcher) callUnordered(ctx context.Context, r Request, targets []target, answers []outcome.Answer) {
	first := -1
	var wg sync.WaitGroup
	for i, t := range targets {
		switch {
		case t.hasOrder():
		case first < 0:
			first = i
		default:
			wg.Go(func() {
				answers[i].Response, answers[i].Err = d.call(ctx, r, t)
			})
		}
	}
	if first >= 0 {
		answers[first].Response, answers[first].Err = d.call(ctx, r, targets[first])
	}
	wg.Wait()
}

// hasOrder reports whether a policy wants the handler to be called before those without an order.
func (t target) hasOrder() bool {
	return t.chain == nil && t.entry.Policy != nil && t.entry.Policy.Order != nil
}

// inOrder returns the indexes of the targets that have an order: lowest order first, and by name where it is the same,
// as the targets are sorted by name. It returns nil if no target has an order.
func inOrder(targets []target) []int {
	var indexes []int
	for i, t := range targets {
		if t.hasOrder() {
			indexes = append(indexes, i)
		}
	}
	slices.SortStableFunc(indexes, func(a, b int) int {
		return cmp.Compare(*targets[a].entry.Policy.Order, *targets[b].entry.Policy.Order)
	})
	return indexes
}
