// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"io"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
)

// Locals writes a row for each handler without a server, and below what there is to say about those that are not just
// ready. If wide, rows have what is in effect for the handlers, and the messages of all.
func Locals(w io.Writer, all []status.InProcess, wide bool) error {
	t := table.New(w)
	columns := []string{"NAME", "HOOK", "READY", "REASON", "CALLS", "FAILED"}
	if wide {
		columns = append(columns,
			"P99", "OFFERED AS", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY", "MESSAGE")
	}
	t.Columns(columns...)
	t.Optional("CALLS", "FAILED")
	attention := false
	for i := range all {
		r := &all[i]
		row := append([]string{r.Name, r.Hook, Condition(r.Ready), r.Reason}, make([]string, len(columns)-4)...)
		if h := r.Handler; h != nil {
			calls := ActivityOf(h)
			copy(row[4:], calls[:2])
			if wide {
				copy(row[6:], append([]string{calls[3], h.OfferedAs}, InEffect(h)[2:]...))
			}
		}
		if wide {
			row[len(row)-1] = r.Message
		}
		t.Row(row...)
		attention = attention || r.Reason != readyReason
	}
	if err := t.Flush(); err != nil || wide || !attention {
		return err
	}
	messages := table.New(w)
	messages.Header("NAME", "MESSAGE")
	for i := range all {
		if r := &all[i]; r.Reason != readyReason {
			messages.Row(r.Name, r.Message)
		}
	}
	return messages.Flush()
}

// Places writes a row for each Cluster that has a place of a rule, and nothing if none has.
func Places(w io.Writer, g *status.Gateway) error {
	t := table.New(w)
	t.Columns("NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "PER")
	t.Optional("HOOK")
	found := false
	for i := range g.Rules {
		r := &g.Rules[i]
		for j := range r.Places {
			p := &r.Places[j]
			found = true
			t.Row(p.Namespace, p.Cluster, r.Hook, "rule."+r.Name, Age(&p.Since, g.Now), p.Per)
		}
	}
	if !found {
		return nil
	}
	return t.Flush()
}

// readyReason is the reason of what is ready, with nothing more to say about it.
const readyReason = "Ready"

// InProcess describes one of the handlers without servers of g, with the last failures.
func InProcess(w io.Writer, g *status.Gateway, r *status.InProcess) error {
	t := table.New(w)
	t.Row("Name:", r.Name)
	t.Row("Hook:", r.Hook)
	t.Row("Ready:", Condition(r.Ready)+", "+r.Reason)
	t.Row("Message:", r.Message)
	if r.Selector != "" {
		t.Row("Namespaces:", "those with "+r.Selector)
	}
	h := r.Handler
	if h == nil {
		return t.Flush()
	}
	t.Row("Offered as:", h.OfferedAs)
	if h.LastSuccess != nil {
		t.Row("Last answer:", Age(h.LastSuccess, g.Now)+" ago")
	}
	t.Row("Calls:", CallsOf(&h.Calls, g.Window))
	if err := t.Flush(); err != nil {
		return err
	}
	if err := HandlersOf(w, []status.Handler{*h}); err != nil {
		return err
	}
	x := &status.Extension{Handlers: []status.Handler{*h}, Failures: r.Failures}
	if err := notes(w, x); err != nil {
		return err
	}
	if len(g.Holds) > 0 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := Holds(w, g); err != nil {
			return err
		}
	}
	if len(r.Places) > 0 {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := Places(w, g); err != nil {
			return err
		}
	}
	return failures(w, x, g.Now)
}
