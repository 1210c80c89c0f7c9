// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
)

func infrastructureOf(read Infrastructure) *Handler {
	x := status.Extension{Name: "acme", Handlers: []status.Handler{{Name: "m.acme", Hook: "ReconcileMachine"}}}
	return New(&gateways{extensions: []status.Extension{x}}, func() net.Addr { return nil }, read)
}

// TestInfrastructure shows what is wrong first, as text, and says how many there are beyond the limit.
func TestInfrastructure(t *testing.T) {
	since, wanted := now.Add(-time.Hour), 3
	s := &status.Infrastructure{Now: now, Pools: []status.InfrastructureObject{
		{Namespace: "n", Name: "pool", Cluster: "a", Class: "rack", State: "Ready", Since: &since, Instances: 2, Objects: 2, Wanted: &wanted},
	}}
	for i := range 300 {
		s.Machines = append(s.Machines, status.InfrastructureObject{Namespace: "n", Name: fmt.Sprint("m", i), Cluster: "a", State: "Ready", Instances: 1, Objects: 1})
	}
	s.Machines[299].Failure = &status.FailedCall{Hook: "DeleteMachine", Reason: "CallFailed", Message: "<b>no</b>", Since: now.Add(-2 * time.Minute)}
	reads := 0
	h := infrastructureOf(func(context.Context) (*status.Infrastructure, error) {
		reads++
		return s, nil
	})
	code, body := get(t, h, "/infrastructure/")
	text, links, _ := textOf(t, body)
	for _, want := range []string{
		"Clusters There is no HookgateCluster.", "Pools 1 of 1 wait or need attention.", "n/pool of a Ready 60m 2/2 (of 3) rack",
		"1 of 300 wait or need attention.", "Message n/m299 of a Ready 1/1 DeleteMachine failing for 2m: CallFailed: <b>no</b>",
		"and 100 more",
	} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("%d, no %q in %s", code, want, text)
		}
	}
	if !strings.Contains(strings.Join(links, " "), "/infrastructure/") {
		t.Errorf("no link leads here: %q", links)
	}
	_, body = get(t, h, "/infrastructure/?q=n/m12")
	if text, _, _ := textOf(t, body); !strings.Contains(text, "None of 11 needs attention.") || strings.Contains(text, "m299") {
		t.Errorf("the search shows %s", text)
	}
	if reads != 1 {
		t.Errorf("the objects were read %d times for two pages", reads)
	}
}

func TestInfrastructureFails(t *testing.T) {
	h := infrastructureOf(func(context.Context) (*status.Infrastructure, error) { return nil, errors.New("<i>forbidden</i>") })
	_, body := get(t, h, "/infrastructure/")
	if text, _, _ := textOf(t, body); !strings.Contains(text, "Not known <i>forbidden</i>") {
		t.Error(text)
	}
	if code, _ := get(t, infrastructureOf(nil), "/infrastructure/"); code != 404 {
		t.Errorf("without a cluster: %d, want 404", code)
	}
	_, body = get(t, newPage(&gateways{}), "/")
	if _, links, _ := textOf(t, body); strings.Contains(strings.Join(links, " "), "/infrastructure/") {
		t.Error("a gateway whose extensions make none has a link")
	}
}
