// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"io"
	"slices"
	"strconv"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
)

// Routes writes a row for each handler of the hooks of a Cluster, with the turn in which it is called, and below them
// what the Cluster waits for. If wide, rows have more columns.
func Routes(w io.Writer, c *status.Cluster, wide bool) error {
	t := table.New(w)
	columns := []string{"HOOK", "TURN", "HANDLER", "STATE", "TIMEOUT", "FAILURE POLICY", "POLICY"}
	if wide {
		columns = append(columns, "ORDER", "OBJECTS", "OFFERED AS", "CALLS", "FAILED", "P50", "P99", "EXTENSION")
	}
	t.Columns(columns...)
	t.Optional("POLICY", "FAILURE POLICY", "TIMEOUT")
	eachRoute(c, func(hook, turn, indent string, h *status.HookedHandler) {
		of := InEffect(&h.Handler)
		if h.Conditional && h.Policy == "" {
			of[7] = "(conditional)"
		}
		row := []string{hook, turn, indent + h.Name, of[2], of[3], of[4], of[7]}
		if wide {
			row = append(append(append(row, of[5], of[6], h.OfferedAs), ActivityOf(&h.Handler)...), extensionOf(h))
		}
		t.Row(row...)
	})
	if err := t.Flush(); err != nil || len(c.Holds) == 0 {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return Holds(w, &status.Gateway{Now: c.Now, Holds: c.Holds})
}

// RouteNames returns the names of the handlers of the hooks of a Cluster, once each.
func RouteNames(c *status.Cluster) []string {
	var names []string
	eachRoute(c, func(_, _, _ string, h *status.HookedHandler) {
		if !slices.Contains(names, h.Name) {
			names = append(names, h.Name)
		}
	})
	return names
}

// eachRoute calls f with each handler of each hook of a Cluster and with its turn, and a chain before its steps, which
// are indented.
func eachRoute(c *status.Cluster, f func(hook, turn, indent string, h *status.HookedHandler)) {
	for i := range c.Hooks {
		hook := &c.Hooks[i]
		for j := range hook.Handlers {
			h, turn := &hook.Handlers[j], ""
			if h.Turn > 0 {
				turn = strconv.Itoa(h.Turn)
			}
			f(hook.Name, turn, "", h)
			for k := range h.Steps {
				step := strconv.Itoa(h.Steps[k].Turn)
				if turn != "" {
					step = turn + "." + step
				}
				f(hook.Name, step, "  ", &h.Steps[k])
			}
		}
	}
}
