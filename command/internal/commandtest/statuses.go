// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commandtest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
)

// GatewayStatus returns the status of a gateway with an extension that is up and one that is down.
func GatewayStatus() *status.Gateway {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	order := int32(5)
	return &status.Gateway{
		ID: "g", Version: "v1.0.0", Now: now, Window: 300,
		Extensions: []status.Extension{{
			Name: "acme", URL: "https://acme.example", Protocol: "REST", State: status.Down, Since: ago(90 * time.Second),
			Error: "cannot connect: connection refused", LastSuccess: ago(2 * time.Minute), Stale: true,
			Pending:   &status.Pending{URL: "https://new.example", Protocol: "REST", Since: *ago(time.Hour)},
			Discovery: &status.Discovery{At: *ago(time.Second), Since: *ago(time.Minute), Outcome: "Unreachable", Error: "connection refused"},
			Circuit:   status.Circuit{State: "half_open", Since: ago(time.Minute), Kind: "Unreachable", Opened: 2},
			InFlight:  3, Waiting: 1, Limits: status.Limits{InFlight: 256, Waiting: 1024},
			Calls:    status.Calls{Total: 100, Failures: 7, NearTimeout: 1, P50: .0012, P99: 1.24},
			Selector: "tier=gold",
			Handlers: []status.Handler{{
				Name: "gate.acme", OfferedAs: "beforeclusterupgrade", Hook: "BeforeClusterUpgrade", APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Timeout: 10,
				FailurePolicy: "Ignore", Order: &order, Policy: "first", Conditional: true, Objects: "v1beta1",
				Deprecated: "deprecated since v2; use v3", State: status.Down,
				Calls: status.Calls{Total: 100, Failures: 7, P50: .0012, P99: 1.24}, Lost: []string{"spec.gone"},
				Collision: `"gate" is taken`,
			}},
			Failures: []status.Failure{{
				At: *ago(time.Second), CallID: "CALL", Hook: "BeforeClusterUpgrade", Handler: "gate.acme", Outcome: "ignored",
				Kind: "Unreachable", Message: "refused\x1b[2J", Took: .5, Times: 4,
			}},
		}, {
			Name: "other", URL: "unix:///run/x", Protocol: "gRPC", State: status.Up, Since: ago(time.Hour),
			HealthUnchecked: true, Circuit: status.Circuit{State: "closed"}, Handlers: []status.Handler{},
		}},
		Holds: []status.Hold{
			{Namespace: "team-a", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "gate.acme", Message: "not yet", RetryAfter: 30, Since: *ago(time.Hour), Last: *ago(time.Minute)},
			{Namespace: "team-b", Cluster: "c", Hook: "BeforeClusterUpgrade", Handler: "gate.acme", Kind: "Failure", Message: "no", Since: *ago(time.Minute), Last: *ago(time.Second)},
		},
	}
}

// ServeStatus serves what g returns, and the first extension for requests that name one.
func ServeStatus(t *testing.T, g func() *status.Gateway) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/status" {
			http.NotFound(w, r)
			return
		}
		answer := g()
		if name := r.URL.Query().Get("chain"); name != "" {
			answer.Chains = slices.DeleteFunc(answer.Chains, func(c status.Chain) bool { return c.Name != name })
			if len(answer.Chains) == 0 {
				http.Error(w, "there is no such chain", http.StatusNotFound)
				return
			}
		}
		if name := r.URL.Query().Get("rollout"); name != "" {
			answer.Rollouts = slices.DeleteFunc(answer.Rollouts, func(of status.Rollout) bool { return of.Name != name })
		}
		switch r.URL.Query().Get("extension") {
		case "":
		case "acme":
			answer.Extensions = answer.Extensions[:1]
		default:
			http.Error(w, "there is no such extension", http.StatusNotFound)
			return
		}
		if r.Header.Get("Authorization") == "Bearer wrong" {
			http.Error(w, "who are you", http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return s
}

// Columns returns the cells of each line, which are divided by at least two spaces.
func Columns(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		var row []string
		for cell := range strings.SplitSeq(strings.TrimRight(line, "\n"), "  ") {
			if cell = strings.TrimSpace(cell); cell != "" {
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// ChainsStatus is GatewayStatus with chains: one that is ready, and one that is not.
func ChainsStatus() *status.Gateway {
	g := GatewayStatus()
	handler := &g.Extensions[0].Handlers[0]
	handler.Chains, handler.State = []string{"gates"}, status.Slow
	g.Holds = g.Holds[:1]
	g.Chains = []status.Chain{{
		Name: "gates", Hook: "BeforeClusterUpgrade", OfferedAs: "beforeclusterupgrade", Ready: true, Reason: "Ready", Message: "Calls go to 1 handler",
		Calls: status.Calls{Total: 5, Failures: 1, P50: .001, P99: .002},
		Steps: []status.ChainStep{
			{
				Handler: "gate.acme", Registered: true, OnHold: "Stop", Settings: []string{"mode", "zone"},
				Details: &status.HookedHandler{Handler: *handler, Extension: "acme"},
			},
			{Handler: "more.none", Optional: true},
		},
	}, {
		Name: "updates-of-machines", Hook: "CanUpdateMachineSet", OfferedAs: "updates-of-machines", Reason: "SeveralOffered", Message: "Calls fail\x1b[2J", OnPartialCoverage: "Block",
		Steps: []status.ChainStep{{Handler: "disk.other", Problem: `no handler "disk.other" is registered`, Allow: []string{"/machineSet/spec", "/x/y"}}},
	}}
	g.MissedChains = 3
	return g
}
