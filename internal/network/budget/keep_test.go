// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import "testing"

func TestKeep(t *testing.T) {
	b := New(total)
	call := mustReserve(t, b, alice, mib)
	const share = total * keptShare / 100
	release, ok := call.Keep(share)
	if !ok {
		t.Fatal("there is nothing to spare in a budget that is hardly used")
	}
	if _, ok := call.Keep(1); ok {
		t.Error("more than the share is kept")
	}
	call.Release()
	wantUsed(t, b, share) // it outlives the call
	release()
	wantUsed(t, b, 0)

	busy := mustReserve(t, b, alice, total/2-mib)
	if _, ok := busy.Keep(mib + 1); ok {
		t.Error("calls use half of the budget, and more is kept")
	}
	release, ok = busy.Keep(mib)
	if !ok {
		t.Error("what is below half of the budget is not kept")
	}
	release()
	busy.Release()
	wantUsed(t, b, 0)

	var unbounded *Reservation
	if release, ok := unbounded.Keep(1 << 40); !ok || release == nil {
		t.Error("without a budget, memory is bounded")
	}
}
