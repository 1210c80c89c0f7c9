// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// budgetPercent is the part of the available memory that is for calls. The rest is for the program and its tables,
	// for registrations, for the buffers of connections, and for garbage.
	budgetPercent = 50
	// MaxBudget is the largest default budget, in bytes: enough for fifty calls with the largest bodies.
	MaxBudget = 2 << 30
	// limitPercent is the part of the available memory that Go's heap may use, if GOMEMLIMIT does not say so.
	limitPercent = 90
)

// Budget returns the default size of the budget for calls, in bytes.
func Budget() int64 { return budgetOf(available(memlimit.FromCgroup, memlimit.FromSystem), goLimit()) }

func budgetOf(available, limit int64) int64 {
	return min(min(available, limit)/100*budgetPercent, MaxBudget)
}

// SetLimit makes the collector work harder as the heap comes near what the process may use, unless GOMEMLIMIT already
// does. It returns the limit, in bytes.
func SetLimit() int64 {
	if limit := goLimit(); limit != math.MaxInt64 {
		return limit
	}
	limit := available(memlimit.FromCgroup, memlimit.FromSystem)
	if limit != math.MaxInt64 {
		limit = limit / 100 * limitPercent
		debug.SetMemoryLimit(limit)
	}
	return limit
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
