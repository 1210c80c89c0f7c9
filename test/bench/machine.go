// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/hookgate/hookgate/test/bench/report"
)

// modelName is the line of /proc/cpuinfo with the processor's name, which ARM's does not have.
var modelName = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)

// thisMachine reads what Linux says. What it does not say is left out.
func thisMachine() report.Machine {
	m := report.Machine{Processors: runtime.NumCPU(), Model: runtime.GOARCH, Go: runtime.Version()}
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := modelName.FindSubmatch(info); found != nil {
			m.Model = string(found[1])
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(load), " ")
	}
	return m
}
