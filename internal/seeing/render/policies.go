// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"io"
	"strconv"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
)

// Policies writes a row for each ExtensionPolicy of a gateway. If wide, it counts the handlers that each is in effect
// for, without those that have a policy of their own.
func Policies(w io.Writer, g *status.Gateway, wide bool) error {
	handlers := map[string]int{}
	for i := range g.Extensions {
		for j := range g.Extensions[i].Handlers {
			handlers[g.Extensions[i].Handlers[j].Policy]++
		}
	}
	for _, locals := range [][]status.Local{g.Rules, g.Jobs} {
		for i := range locals {
			if h := locals[i].Handler; h != nil {
				handlers[h.Policy]++
			}
		}
	}
	t := table.New(w)
	columns := []string{"NAME", "TARGET", "ACCEPTED", "REASON"}
	if wide {
		columns = append(columns, "HANDLERS")
	}
	t.Columns(append(columns, "MESSAGE")...)
	t.Optional("REASON")
	for i := range g.Policies {
		p := &g.Policies[i]
		row := []string{p.Name, p.Target, Condition(p.Accepted), p.Reason}
		if wide {
			row = append(row, strconv.Itoa(handlers[p.Name]))
		}
		t.Row(append(row, p.Message)...)
	}
	return t.Flush()
}

// Condition returns the status of a condition.
func Condition(is bool) string {
	if is {
		return "True"
	}
	return "False"
}
