// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
)

// Registered returns the handlers of all extensions, rollouts, rules and Jobs of a gateway, and its chains, which have
// no extension: by the name under which the gateway offers them, and those that it offers as one in the order in which
// it calls them, but chains before their steps, and rollouts before the members that answer for them.
func Registered(g *status.Gateway) []status.HookedHandler {
	handlers := []status.HookedHandler{}
	registered := map[string]*status.Handler{}
	for i := range g.Extensions {
		x := &g.Extensions[i]
		for j := range x.Handlers {
			handlers = append(handlers, status.HookedHandler{
				Handler: x.Handlers[j], Extension: x.Name, Rollout: x.Rollout,
			})
			registered[x.Handlers[j].Name] = &x.Handlers[j]
		}
	}
	for i := range g.Rollouts {
		of := &g.Rollouts[i]
		for j := range of.Handlers {
			handlers = append(handlers, status.HookedHandler{Handler: of.Handlers[j], Extension: of.Name})
			registered[of.Handlers[j].Name] = &of.Handlers[j]
		}
	}
	for _, locals := range [][]status.InProcess{g.Rules, g.Jobs} {
		for i := range locals {
			if h := locals[i].Handler; h != nil {
				handlers = append(handlers, status.HookedHandler{Handler: *h, Extension: locals[i].Name})
				registered[h.Name] = h
			}
		}
	}
	for i := range g.Chains {
		if c := &g.Chains[i]; c.OfferedAs != "" {
			handlers = append(handlers, chained(c, registered))
		}
	}
	slices.SortFunc(handlers, func(a, b status.HookedHandler) int {
		return cmp.Or(cmp.Compare(a.OfferedAs, b.OfferedAs), inOrder(a.Order, b.Order),
			cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Name, b.Name))
	})
	return handlers
}

// rank returns the place of what answers under several names: chains, which have no extension, before rollouts, and
// these before others.
func rank(h *status.HookedHandler) int {
	switch {
	case h.Extension == "":
		return 0
	case h.Kind == rolloutKind:
		return 1
	}
	return 2
}

const rolloutKind = "ExtensionRollout"

// chained returns a chain as one of the handlers of a gateway: its state is the worst of its steps, and its timeout
// that of all of them. Each step has a failure policy of its own; callers see Fail.
func chained(c *status.Chain, registered map[string]*status.Handler) status.HookedHandler {
	h := status.Handler{
		Name: c.Name, OfferedAs: c.OfferedAs, Hook: c.Hook, State: status.Up, FailurePolicy: "Fail", Calls: c.Calls,
	}
	var timeout status.Seconds
	for i := range c.Steps {
		if of := registered[c.Steps[i].Handler]; of != nil {
			h.APIVersion = of.APIVersion
			timeout += of.Timeout
			if of.State.Worse(h.State) {
				h.State = of.State
			}
		}
	}
	h.Timeout = min(timeout, status.InSeconds(limits.Timeout))
	if !c.Ready {
		h.State, h.Error = status.Down, c.Message
	}
	return status.HookedHandler{Handler: h}
}

// inOrder compares orders. Handlers without one come last.
func inOrder(a, b *int32) int {
	switch {
	case a != nil && b != nil:
		return cmp.Compare(*a, *b)
	case a != nil:
		return -1
	case b != nil:
		return 1
	}
	return 0
}

// HandlersInEffect writes a row for each handler, with what is in effect for it. If wide, it has more columns.
func HandlersInEffect(w io.Writer, handlers []status.HookedHandler, wide bool) error {
	t := table.New(w)
	columns := []string{
		"OFFERED AS", "HANDLER", "HOOK", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY",
	}
	if wide {
		columns = append(columns, "CALLS", "FAILED", "P50", "P99", "CHAINS", "EXTENSION")
	}
	t.Columns(columns...)
	t.Optional("OBJECTS", "OFFERED AS", "ORDER", "POLICY", "TIMEOUT", "FAILURE POLICY")
	for i := range handlers {
		h := &handlers[i].Handler
		row := append([]string{h.OfferedAs}, InEffect(h)...)
		if wide {
			row = append(append(row, ActivityOf(h)...), strings.Join(h.Chains, ", "), extensionOf(&handlers[i]))
		} else {
			row[1] += partInRollout(&handlers[i])
		}
		t.Row(row...)
	}
	return t.Flush()
}

// extensionOf returns the cell with the extension of a handler.
func extensionOf(h *status.HookedHandler) string {
	switch {
	case h.Kind == rolloutKind:
		return rolloutKind + " " + h.Extension
	case h.Rollout != nil:
		return fmt.Sprintf("%s (%s)", h.Extension, memberText(h.Rollout))
	}
	return h.Extension
}

// partInRollout returns which of the handlers with nearly the same name this one is: that of a rollout, or of one of
// its versions.
func partInRollout(h *status.HookedHandler) string {
	switch {
	case h.Kind == rolloutKind:
		return " (rollout)"
	case h.Rollout == nil:
		return ""
	}
	return " (" + cmp.Or(h.Rollout.As, "not called") + ")"
}

// HandlersOf writes an empty line, and a row for each handler with what is in effect for it and its calls.
func HandlersOf(w io.Writer, handlers []status.Handler) error {
	t := table.New(w)
	t.Header("HANDLER", "HOOK", "STATE", "TIMEOUT", "FAILURE POLICY", "ORDER", "OBJECTS", "POLICY",
		"CALLS", "FAILED", "P50", "P99")
	t.Optional("P50", "OBJECTS", "P99", "ORDER", "POLICY", "FAILURE POLICY", "TIMEOUT", "CALLS")
	for i := range handlers {
		t.Row(append(InEffect(&handlers[i]), ActivityOf(&handlers[i])...)...)
	}
	if len(handlers) == 0 {
		t.Row("(no handlers)")
	}
	return t.Flush()
}

// InEffect returns the cells with what is in effect for a handler.
func InEffect(h *status.Handler) []string {
	order := ""
	if h.Order != nil {
		order = strconv.Itoa(int(*h.Order))
	}
	policy := h.Policy
	if h.Conditional {
		policy += " (conditional)"
	}
	return []string{
		h.Name, hookOf(h), string(h.State), Latency(h.Timeout), h.FailurePolicy, order, cmp.Or(h.Objects, "as sent"), policy,
	}
}

// ActivityOf returns the cells with the calls of a handler.
func ActivityOf(h *status.Handler) []string {
	return []string{
		strconv.FormatUint(h.Calls.Total, 10), strconv.FormatUint(h.Calls.Failures, 10), percentile(&h.Calls, h.Calls.P50),
		percentile(&h.Calls, h.Calls.P99),
	}
}

// Condition returns the status of a condition.
func Condition(is bool) string {
	if is {
		return "True"
	}
	return "False"
}
