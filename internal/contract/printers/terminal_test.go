// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package printers

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
)

// TestHoldsOnATerminal says on 80 columns who holds a Cluster and why, and leaves out when and the message.
func TestHoldsOnATerminal(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	g := &status.Gateway{Now: now, Holds: []status.Hold{{
		Namespace: "team-a", Cluster: "prod", Hook: "BeforeClusterUpgrade", Handler: "gate.approvals", Kind: "BadResponse",
		Message: "500: database is away, and will be back tomorrow", Since: now.Add(-time.Hour), Last: now,
	}}}
	for width, want := range map[int][]string{
		80:  {"NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "REASON"},
		200: {"NAMESPACE", "CLUSTER", "HOOK", "HANDLER", "SINCE", "ASKED", "REASON", "MESSAGE"},
	} {
		var b bytes.Buffer
		if err := Holds(&table.Terminal{Writer: &b, Width: width}, g); err != nil {
			t.Fatal(err)
		}
		head, rows, _ := strings.Cut(b.String(), "\n")
		if got := strings.Fields(head); !slices.Equal(got, want) || !strings.Contains(rows, "gate.approvals") || !strings.Contains(rows, "BadResponse") {
			t.Errorf("%d columns: got\n%s", width, b.String())
		}
	}
}

// TestHandlersOfARollout tells handlers of one name apart.
func TestHandlersOfARollout(t *testing.T) {
	handler := func(kind, as string) status.HookedHandler {
		h := status.HookedHandler{Handler: status.Handler{Name: "patch.acme", Kind: kind}}
		if as != "" {
			h.Rollout = &status.RolloutMember{Name: "acme", As: strings.TrimSpace(as)}
		}
		return h
	}
	var b bytes.Buffer
	err := HandlersInEffect(&b, []status.HookedHandler{handler(rolloutKind, ""), handler("", "stable"), handler("", " "), handler("", "")}, false)
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, want := range []string{"patch.acme (rollout) ", "patch.acme (stable) ", "patch.acme (not called) ", "patch.acme  "} {
		if !strings.Contains(rows[i+1], want) {
			t.Errorf("got %q, want %q in it", rows[i+1], want)
		}
	}
}
