// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionpolicy

import (
	"io"
	"strconv"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/kinds"
)

// listed is where a status has the policies.
var listed = kinds.Member[status.Policy]{
	At:  func(g *status.Gateway) (*[]status.Policy, *int) { return &g.Policies, &g.MissedPolicies },
	Row: func(p *status.Policy) kinds.Row { return kinds.Row{Name: p.Name, Ready: p.Accepted} },
}

// shownKind is what people see of the kind.
var shownKind = kinds.Shown{
	Singular: "policy", Plural: "policies", In: listed, Table: writeTable,
	Short: "List the ExtensionPolicies, and whether they are accepted",
	Long: "List the ExtensionPolicies of a gateway: the target of each, whether the policy is accepted, and if not,\n" +
		"why. In a cluster, the list shows the verdicts of the replica that is queried;\n" +
		"\"kubectl get extensionpolicies\" shows the leader's verdicts, from the condition Accepted.",
	Wide: "the number of handlers that each policy applies to",
}

// writeTable writes a row for each ExtensionPolicy of a gateway. If wide, it counts the handlers that each is in effect
// for, without those that have a policy of their own.
func writeTable(w io.Writer, g *status.Gateway, wide bool) error {
	handlers := map[string]int{}
	for i := range g.Extensions {
		for j := range g.Extensions[i].Handlers {
			handlers[g.Extensions[i].Handlers[j].Policy]++
		}
	}
	for _, locals := range [][]status.InProcess{g.Rules, g.Jobs} {
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
	t.Optional("MESSAGE", "REASON")
	t.Below("NAME", "MESSAGE")
	for i := range g.Policies {
		p := &g.Policies[i]
		row := []string{p.Name, p.Target, printers.Condition(p.Accepted), p.Reason}
		if wide {
			row = append(row, strconv.Itoa(handlers[p.Name]))
		}
		t.Row(append(row, p.Message)...)
	}
	return t.Flush()
}
