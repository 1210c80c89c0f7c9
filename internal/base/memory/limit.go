// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory sets how much memory the process uses: how much of it is for calls, from where on Go's collector works
// harder, at which pace it works until then, and when memory goes back to the system.
package memory

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// budgetPercent is the part of the available memory that is for calls. The rest is for the program and its tables,
	// for registrations, for the buffers of connections, and for garbage.
	budgetPercent = limits.BudgetShare
	// MaxBudget is the largest default budget, in bytes: enough for fifty calls with the largest bodies.
	MaxBudget = limits.LargestBudget
	// MaxUnlimited is the largest default budget of a process without a limit, in bytes: that of a container with 1 GiB.
	// Other programs of the machine need the rest, and all calls of a busy Cluster API fit.
	MaxUnlimited = limits.LargestUnlimited
	// unlimitedPart is the part of the machine's memory that such a budget may be: a sixteenth.
	unlimitedPart = limits.UnlimitedPart
	// limitPercent is the part of the available memory that Go's heap may use, if GOMEMLIMIT does not say so.
	limitPercent = limits.HeapShare
)

// Budget returns the default size of the budget for calls, in bytes. limited reports whether the process has a limit of
// its own, by its cgroup or GOMEMLIMIT.
func Budget() (bytes int64, limited bool) {
	return budgetOf(available(memlimit.FromCgroup), available(memlimit.FromSystem), goLimit())
}

// Available returns the memory that the process may use, in bytes, by its cgroup, GOMEMLIMIT and the machine.
func Available() int64 { return min(available(memlimit.FromCgroup, memlimit.FromSystem), goLimit()) }

func budgetOf(cgroup, machine, limit int64) (bytes int64, limited bool) {
	if least := min(cgroup, limit); least < machine {
		heap := heapOf(cgroup)
		if limit < cgroup {
			heap = limit
		}
		return min(max(min(least/100*budgetPercent, heap-limits.ProgramHeap), least/8), MaxBudget), true
	}
	return min(machine/unlimitedPart, MaxUnlimited), false
}

// SetLimit makes the collector work harder as the heap comes near what the process may use, unless GOMEMLIMIT makes it
// do so earlier.
func SetLimit() {
	if limit := available(memlimit.FromCgroup, memlimit.FromSystem); limit != math.MaxInt64 {
		debug.SetMemoryLimit(min(heapOf(limit), goLimit()))
	}
}

// heapOf returns what Go's heap may take of the available memory.
func heapOf(limit int64) int64 {
	return max(min(limit/100*limitPercent, limit-limits.HeapRest), limit/2)
}

// goLimit returns the memory limit of Go's runtime, which GOMEMLIMIT sets; without it, math.MaxInt64.
func goLimit() int64 { return debug.SetMemoryLimit(-1) }

// available returns the memory that the process may use, in bytes: the limit of its cgroup, of either version, or that
// of the machine if that is less; math.MaxInt64 if neither is known.
func available(sources ...memlimit.Provider) int64 {
	least := uint64(math.MaxInt64)
	for _, source := range sources {
		if limit, err := source(); err == nil && limit > 0 { // an error says that there is no limit, or no such file
			least = min(least, limit)
		}
	}
	return int64(least)
}
