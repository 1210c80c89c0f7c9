// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
)

// machine is where a run took place.
type machine struct {
	Processors int    `json:"processors"`
	Model      string `json:"model"`
	// Load is the load average of the minute before the run: above 0, the machine did something else, too.
	Load string `json:"loadAverage"`
	Go   string `json:"go"`
}

// modelName is the line of /proc/cpuinfo with the processor's name, which ARM's does not have.
var modelName = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)

// thisMachine reads what Linux says. What it does not say is left out.
func thisMachine() machine {
	m := machine{Processors: runtime.NumCPU(), Model: runtime.GOARCH, Go: runtime.Version()}
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

func (m machine) String() string {
	return fmt.Sprintf("%d processors (%s), load average %s before the run, bench built with %s", m.Processors, m.Model, m.Load, m.Go)
}
