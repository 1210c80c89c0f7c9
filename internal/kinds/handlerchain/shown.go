// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/kinds"
)

// listed is where a status has the chains.
var listed = kinds.Member[status.Chain]{
	At:  func(g *status.Gateway) (*[]status.Chain, *int) { return &g.Chains, &g.MissedChains },
	Row: func(c *status.Chain) kinds.Row { return kinds.Row{Name: c.Name, Hook: c.Hook, Ready: c.Ready} },
}

// shownKind is what people see of the kind.
var shownKind = kinds.Shown{
	Singular: "chain", Plural: "chains", In: listed, Table: writeTable, Describe: describe,
	Short: "List the HandlerChains, and whether they are ready",
	Long: "List the HandlerChains of a gateway: which hook each answers, whether the chain can be called, and if\n" +
		"not, why. In a cluster, the list shows the verdicts of the replica that is queried;\n" +
		"\"kubectl get handlerchains\" shows the leader's verdicts, from the condition Ready.",
	Wide: "the names of the steps and all messages",
	Ready: kinds.ReadyMetric{
		Name: "hookgate_handler_chain_ready", Label: "handler",
		Help: "Whether a HandlerChain is ready (1) or not (0). The label `handler` is the name of the HandlerChain. " +
			"The label `hook` is empty if the HandlerChain was never valid.",
	},
}

// writeTable writes a row for each HandlerChain of a gateway, and below what there is to say about those that need
// attention, so that the rows fit into a terminal. If wide, rows have the steps and the messages of all.
func writeTable(w io.Writer, g *status.Gateway, wide bool) error {
	t := table.New(w)
	if wide {
		t.Columns("NAME", "HOOK", "READY", "REASON", "OFFERED AS", "COVERAGE", "STEPS", "MESSAGE")
	} else {
		t.Columns("NAME", "HOOK", "READY", "REASON", "STEPS")
		t.Optional("STEPS")
	}
	attention := false
	for i := range g.Chains {
		c := &g.Chains[i]
		row := []string{c.Name, c.Hook, printers.Condition(c.Ready), c.Reason}
		if wide {
			row = append(row, c.OfferedAs, c.OnPartialCoverage, stepNames(c), c.Message)
		} else {
			row = append(row, strconv.Itoa(len(c.Steps)))
		}
		t.Row(row...)
		attention = attention || needsAttention(c)
	}
	if err := t.Flush(); err != nil || wide || !attention {
		return err
	}
	messages := table.New(w)
	messages.Header("NAME", "MESSAGE")
	for i := range g.Chains {
		if c := &g.Chains[i]; needsAttention(c) {
			messages.Row(c.Name, c.Message)
		}
	}
	return messages.Flush()
}

// needsAttention reports whether a chain cannot be called, or is not the only handler where Cluster API takes one.
func needsAttention(c *status.Chain) bool { return !c.Ready || c.Reason != v1alpha1.ReadyReason }

// stepNames returns the handlers of a chain in their order.
func stepNames(c *status.Chain) string {
	names := make([]string, len(c.Steps))
	for i := range c.Steps {
		names[i] = c.Steps[i].Handler
	}
	return strings.Join(names, ", ")
}

// describe describes the first chain of g, which is all that g has, with its steps.
func describe(w io.Writer, g *status.Gateway) error {
	c := &g.Chains[0]
	t := table.New(w)
	t.Row("Name:", c.Name)
	t.Row("Hook:", c.Hook)
	t.Row("Offered as:", c.OfferedAs)
	t.Row("Ready:", printers.Condition(c.Ready)+", "+c.Reason)
	t.Row("Message:", c.Message)
	if c.OnPartialCoverage != "" {
		t.Row("Partial coverage:", c.OnPartialCoverage)
	}
	t.Row("Calls:", printers.CallsOf(&c.Calls, g.Window))
	if err := t.Flush(); err != nil {
		return err
	}
	steps := table.New(w)
	steps.Header("STEP", "HANDLER", "STATE", "TIMEOUT", "FAILURE POLICY", "OPTIONAL", "OBJECTS", "POLICY",
		"CALLS", "FAILED", "P50", "P99")
	steps.Optional("P50", "OBJECTS", "P99", "POLICY", "FAILURE POLICY", "TIMEOUT", "CALLS", "OPTIONAL")
	for i := range c.Steps {
		s := &c.Steps[i]
		row := make([]string, 12)
		if s.Details != nil {
			of := printers.InEffect(&s.Details.Handler)
			row = slices.Concat([]string{"", ""}, of[2:5], []string{""}, of[6:], printers.ActivityOf(&s.Details.Handler))
		}
		row[0], row[1], row[5] = strconv.Itoa(i+1), s.Handler, strconv.FormatBool(s.Optional)
		steps.Row(row...)
	}
	if len(c.Steps) == 0 {
		steps.Row("(no steps)")
	}
	if err := steps.Flush(); err != nil {
		return err
	}
	if err := stepNotes(w, c); err != nil || len(g.Holds) == 0 {
		return err
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return printers.Holds(w, g)
}

// stepNotes writes what keeps steps from being called, and what is said of them in the chain alone.
func stepNotes(w io.Writer, c *status.Chain) error {
	t := table.New(w)
	t.Fold()
	headed := false
	note := func(i int, text string) {
		if !headed {
			t.Header("STEP", "NOTE")
		}
		headed = true
		t.Row(strconv.Itoa(i+1), text)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		switch {
		case s.Problem != "":
			note(i, s.Problem)
		case !s.Registered && s.Optional:
			note(i, "it is not registered, so it is skipped")
		}
		if s.Details != nil && s.Details.Error != "" {
			note(i, s.Details.Error)
		}
		if len(s.Settings) > 0 {
			note(i, "adds the settings "+strings.Join(s.Settings, ", "))
		}
		if s.OnHold != "" && i+1 < len(c.Steps) {
			note(i, "while it holds, the steps after it are not called")
		}
		if len(s.Allow) > 0 {
			note(i, "may change only "+strings.Join(s.Allow, ", "))
		}
	}
	return t.Flush()
}
