// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func limitOf(bytes uint64) memlimit.Provider { return func() (uint64, error) { return bytes, nil } }

func unknown() (uint64, error) { return 0, errors.New("no such file") }

func TestAvailable(t *testing.T) {
	for name, tc := range map[string]struct {
		cgroup, system memlimit.Provider
		want           int64
	}{
		"Container":       {limitOf(512 << 20), limitOf(64 << 30), 512 << 20},
		"Machine":         {unknown, limitOf(64 << 30), 64 << 30},
		"MoreThanThereIs": {limitOf(128 << 30), limitOf(64 << 30), 64 << 30},
		"Unlimited":       {limitOf(math.MaxUint64), limitOf(64 << 30), 64 << 30},
		"Unknown":         {unknown, unknown, math.MaxInt64},
		"Zero":            {limitOf(0), limitOf(1 << 30), 1 << 30},
	} {
		if got := available(tc.cgroup, tc.system); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestBudgetOf(t *testing.T) {
	const none = math.MaxInt64
	for _, tc := range []struct {
		cgroup, machine, limit, want int64
		limited                      bool
	}{
		{512 << 20, 64 << 30, none, 512 << 20 / 100 * 50, true},
		{512 << 20, 64 << 30, 400 << 20, 400 << 20 / 100 * 50, true},
		{none, 64 << 30, 400 << 20, 400 << 20 / 100 * 50, true},
		{512 << 20, none, none, 512 << 20 / 100 * 50, true},
		{32 << 30, 64 << 30, none, MaxBudget, true},
		{64 << 20, 64 << 30, none, 14 << 20, true},      // of a heap of 40 MiB
		{64 << 20, 64 << 30, 460 << 20, 14 << 20, true}, // GOMEMLIMIT says nothing then
		{512 << 20, 64 << 30, 40 << 20, 14 << 20, true},
		{32 << 20, 64 << 30, none, 4 << 20, true},
		{none, 64 << 30, none, MaxUnlimited, false},
		{none, 4 << 30, none, 256 << 20, false},
		{math.MaxInt64 - 4095, 4 << 30, none, 256 << 20, false}, // as version 1 says that there is none
		{4 << 30, 4 << 30, none, 256 << 20, false},
		{none, none, none, MaxUnlimited, false},
	} {
		if got, limited := budgetOf(tc.cgroup, tc.machine, tc.limit); got != tc.want || limited != tc.limited {
			t.Errorf("of %d of %d, at most %d: got %d, limited %t, want %d, %t",
				tc.cgroup, tc.machine, tc.limit, got, limited, tc.want, tc.limited)
		}
	}
	if got, _ := Budget(); got <= 0 {
		t.Error("this process has no budget")
	}
}

// GOMEMLIMIT is kept if it is less than the part of what is available.
func TestSetLimit(t *testing.T) {
	defer debug.SetMemoryLimit(goLimit())
	const own = 300 << 20
	debug.SetMemoryLimit(own)
	if SetLimit(); goLimit() != own {
		t.Errorf("with GOMEMLIMIT: %d, want %d", goLimit(), own)
	}
	all := available(memlimit.FromCgroup, memlimit.FromSystem)
	for _, limit := range []int64{math.MaxInt64, all} {
		debug.SetMemoryLimit(limit)
		if SetLimit(); goLimit() != heapOf(all) {
			t.Errorf("with %d: %d, want %d", limit, goLimit(), heapOf(all))
		}
	}
}

// Of little memory, a larger part is left for what exceeds the limit of the heap for a moment.
func TestHeap(t *testing.T) {
	for limit, want := range map[int64]int64{20 << 20: 10 << 20, 64 << 20: 40 << 20, 128 << 20: 104 << 20, 1000 << 20: 900 << 20} {
		if got := heapOf(limit); got>>20 != want>>20 {
			t.Errorf("of %d MiB, the heap may take %d, want %d", limit>>20, got>>20, want>>20)
		}
	}
}
