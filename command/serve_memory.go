// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/memory"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/network/budget"
)

// memoryOptions are the flags about memory.
type memoryOptions struct {
	limit string
	bytes int64
}

func (o *memoryOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.limit, "memory-budget", "",
		fmt.Sprintf("memory for all calls in flight together, such as 256Mi; at least %dMi; the default is half of "+
			"the process's memory limit (of the container, or GOMEMLIMIT), but not more than %dMi; if there is no "+
			"limit, the default is a sixteenth of the machine's memory, but not more than %dMi",
			budget.MinLimit>>20, memory.MaxBudget>>20, memory.MaxUnlimited>>20))
}

// check returns an error of usage unless the budget is a quantity that is large enough.
func (o *memoryOptions) check() error {
	if o.limit == "" {
		return nil
	}
	q, err := resource.ParseQuantity(o.limit)
	if err != nil {
		return cmdline.Usagef("--memory-budget: want a quantity such as 256Mi, got %q", o.limit)
	}
	if o.bytes = q.Value(); o.bytes < budget.MinLimit {
		return cmdline.Usagef("--memory-budget: want at least %dMi, got %s", budget.MinLimit>>20, o.limit)
	}
	return nil
}

// idleConnections returns how many idle connections to a host are kept: together they take at most a quarter of what
// calls may use.
func idleConnections(calls int64) int {
	return int(min(max(calls/4/limits.IdleConnectionBytes, limits.LeastIdleConnections), limits.IdleConnections))
}

// budget returns the budget of all calls. It logs its size if the process has no limit of memory, or too little. For
// development, a process without a limit is usual.
func (o *memoryOptions) budget(logger *slog.Logger, dev bool) *budget.Budget {
	mib := func(bytes int64) string { return fmt.Sprintf("%dMi", bytes>>20) }
	if o.bytes > 0 {
		if available := memory.Available(); o.bytes > available/100*limits.LargestBudgetShare {
			logger.Warn("--memory-budget is most of the memory that the process may use, so calls may exceed the memory "+
				"limit: lower --memory-budget, or raise the memory limit", "memoryBudget", mib(o.bytes), "memory", mib(available))
		}
		return budget.New(o.bytes)
	}
	bytes, limited := memory.Budget()
	b := budget.New(bytes)
	if bytes < budget.MinLimit {
		logger.Warn("The process has too little memory for the largest calls, which are refused: raise the limit of its "+
			"container, or GOMEMLIMIT", "memoryBudget", mib(bytes), "memory", mib(memory.Available()),
			"wanted", mib(budget.MinLimit*100/limits.BudgetShare))
	}
	if !limited && !dev {
		logger.Info("The process has no memory limit, so calls get only a small part of the machine's memory: set a limit, "+
			"GOMEMLIMIT or --memory-budget", "memoryBudget", fmt.Sprintf("%dMi", b.Usage().Limit>>20))
	}
	return b
}
