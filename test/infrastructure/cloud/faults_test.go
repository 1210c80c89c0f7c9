// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// TestRules breaks requests, before and after the cloud does what they ask.
func TestRules(t *testing.T) {
	for name, row := range map[string]struct {
		rule  api.Rule
		check func(*api.Error) bool // nil: the connection is cut, or the answer is not JSON
	}{
		"error": {
			api.Rule{Action: api.ActionError, Status: 503, Reason: api.Unavailable},
			func(e *api.Error) bool { return e.Status == 503 && e.Reason == api.Unavailable },
		},
		"default": {
			api.Rule{Action: api.ActionError},
			func(e *api.Error) bool { return e.Status == http.StatusInternalServerError },
		},
		"garbage": {rule: api.Rule{Action: api.ActionGarbage}},
		"close":   {rule: api.Rule{Action: api.ActionClose}},
	} {
		for _, after := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newFixture(t, Config{})
				rule := row.rule
				rule.Method, rule.Path, rule.After, rule.Times = http.MethodPost, "/machines", after, 2
				w.must(http.MethodPut, "/faults", api.Faults{Rules: []api.Rule{rule}}, nil)
				for range 2 {
					var m api.Machine
					err := w.Do(t.Context(), http.MethodPost, "/machines", w.worker("one"), &m)
					failure := &api.Error{}
					if errors.As(err, &failure) != (row.check != nil) || err == nil || row.check != nil && !row.check(failure) {
						t.Errorf("after %t: %v", after, err)
					}
				}
				w.must(http.MethodPost, "/machines", w.worker("one"), nil) // the third time
				want := 1
				if after {
					want = 3
				}
				if got := w.counts().Machines.Created; got != want {
					t.Errorf("after %t: %d machines, want %d", after, got, want)
				}
				var faults api.Faults
				w.must(http.MethodGet, "/faults", nil, &faults)
				if faults.Rules[0].Hits != 2 {
					t.Errorf("faults: %+v", faults)
				}
			})
		}
	}
}

// TestUnbroken breaks every path, but for those with which a test ends it.
func TestUnbroken(t *testing.T) {
	w := newFixture(t, Config{})
	everything := []api.Rule{{Path: "/*", Action: api.ActionClose}, {Path: "/*/*", Action: api.ActionClose}}
	w.must(http.MethodPut, "/faults", api.Faults{Rules: everything}, nil)
	for _, path := range []string{"/machines", "/networks/net"} {
		if err := w.Do(t.Context(), http.MethodGet, path, nil, nil); err == nil {
			t.Errorf("%s answers", path)
		}
	}
	w.counts()
	w.must(http.MethodGet, "/events", nil, nil)
	w.must(http.MethodDelete, "/faults", nil, nil)
	w.must(http.MethodGet, "/machines", nil, nil)
}

// TestHang has a request hang once it was done, and go on when the faults are cleared or the caller leaves.
func TestHang(t *testing.T) {
	w := newFixture(t, Config{})
	rule := api.Rule{Path: "/machines/*", Action: api.ActionHang, After: true, Method: http.MethodPut}
	hang := func(ctx context.Context, key string, hits int) chan error {
		answered := make(chan error, 1)
		go func() { answered <- w.Do(ctx, http.MethodPut, "/machines/"+key, w.worker(key), nil) }()
		w.wait("the request hangs", func() bool {
			var faults api.Faults
			w.must(http.MethodGet, "/faults", nil, &faults)
			return faults.Rules[0].Hits == hits
		})
		w.wait("it was done", func() bool { return w.counts().Machines.Created == hits })
		select {
		case err := <-answered:
			t.Fatalf("answered: %v", err)
		default:
		}
		return answered
	}
	w.must(http.MethodPut, "/faults", api.Faults{Rules: []api.Rule{rule}}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	first := hang(ctx, "one", 1)
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left: %v", err)
	}
	second := hang(t.Context(), "two", 2)
	w.must(http.MethodDelete, "/faults", nil, nil)
	if err := <-second; err == nil {
		t.Error("a request that hung was answered")
	}
	w.must(http.MethodPut, "/machines/two", w.worker("two"), nil)
	if got := w.counts().Machines.Created; got != 2 {
		t.Errorf("%d machines", got)
	}
}

// TestLists has lists lie in every way.
func TestLists(t *testing.T) {
	w := newFixture(t, Config{})
	w.startCluster()
	g := w.putGroup(api.GroupSpec{
		Network: "net", Name: "pool", Replicas: 3, Revision: "1", Version: version, Bootstrap: w.workerData(token, nil),
	})
	for list, want := range map[string]struct{ items, count int }{
		"": {3, 3}, api.ListEmpty: {0, 0}, api.ListShort: {1, 1}, api.ListCut: {1, 3}, api.ListDuplicate: {4, 4},
	} {
		w.must(http.MethodPut, "/faults", api.Faults{List: list}, nil)
		w.must(http.MethodGet, "/groups/pool", nil, &g)
		if len(g.Instances) != want.items || g.InstanceCount != want.count {
			t.Errorf("%q: %d items, %d", list, len(g.Instances), g.InstanceCount)
		}
		var machines api.MachineList
		w.must(http.MethodGet, "/machines", nil, &machines) // four
		if list == api.ListCut && (len(machines.Items) != 2 || machines.Count != 4) {
			t.Errorf("%q: %d items, %d", list, len(machines.Items), machines.Count)
		}
	}
	w.must(http.MethodDelete, "/faults", nil, nil)
	if counts := w.counts(); counts.Machines.Exist != 4 || counts.Machines.Deleted != 0 {
		t.Errorf("a lie changed what there is: %+v", counts)
	}
}

// TestCapacity has the cloud full, and slow.
func TestCapacity(t *testing.T) {
	w := newFixture(t, Config{})
	w.startCluster()
	w.must(http.MethodPut, "/faults", api.Faults{Quota: new(2), Full: []string{"fd-2"}, MachineDelay: "1h"}, nil)
	full := w.worker("full")
	full.FailureDomain = "fd-2"
	w.refused(api.InsufficientCapacity, http.MethodPut, "/machines/full", full)
	fits := w.worker("fits")
	fits.FailureDomain = "fd-1"
	w.must(http.MethodPut, "/machines/fits", fits, nil)
	over := w.worker("over")
	over.FailureDomain = "fd-1"
	w.refused(api.QuotaExceeded, http.MethodPut, "/machines/over", over)
	if got := w.machine("fits").State; got != api.Provisioning {
		t.Errorf("a slow machine is %s", got)
	}
	w.must(http.MethodDelete, "/faults", nil, nil)
	w.waitMachine("fits", api.Running)

	w.must(http.MethodPut, "/faults", api.Faults{NetworkDelay: "1h"}, nil)
	w.must(http.MethodPut, "/networks/slow", api.NetworkSpec{}, nil)
	slow := api.MachineSpec{Network: "slow", Name: "x", Version: version, Bootstrap: w.workerData(token, nil)}
	w.refused(api.Conflict, http.MethodPut, "/machines/x", slow)
}

// TestBadFaults refuses faults that mean nothing, and keeps those before.
func TestBadFaults(t *testing.T) {
	w := newFixture(t, Config{})
	w.must(http.MethodPut, "/faults", api.Faults{MachineDelay: "1s"}, nil)
	rule := api.Rule{Path: "/x", Action: api.ActionClose}
	rules := func(count int) []api.Rule {
		many := make([]api.Rule, count)
		for i := range many {
			many[i] = rule
		}
		return many
	}
	for name, faults := range map[string]api.Faults{
		"delay":    {MachineDelay: "soon"},
		"negative": {DeletionDelay: "-1s"},
		"long":     {NetworkDelay: "61m"},
		"list":     {List: "odd"},
		"path":     {Rules: []api.Rule{{Path: "[", Action: api.ActionHang}}},
		"no path":  {Rules: []api.Rule{{Action: api.ActionHang}}},
		"action":   {Rules: []api.Rule{{Path: "/x", Action: "explode"}}},
		"status":   {Rules: []api.Rule{{Path: "/x", Action: api.ActionError, Status: 200}}},
		"rules":    {Rules: rules(maxRules + 1)},
	} {
		t.Run(name, func(*testing.T) { w.refused(api.InvalidParameters, http.MethodPut, "/faults", faults) })
	}
	var faults api.Faults
	w.must(http.MethodGet, "/faults", nil, &faults)
	if faults.MachineDelay != "1s" || len(faults.Rules) != 0 {
		t.Errorf("faults: %+v", faults)
	}
	w.must(http.MethodPut, "/faults", api.Faults{NetworkDelay: "60m", Rules: rules(maxRules)}, nil)
}

// TestBadRequests refuses what cannot be.
func TestBadRequests(t *testing.T) {
	w := newFixture(t, Config{})
	data := &api.Bootstrap{Data: []byte("x")}
	machine := func(change func(*api.MachineSpec)) api.MachineSpec {
		spec := api.MachineSpec{Network: "net", Name: "m", Version: version, Bootstrap: data}
		change(&spec)
		return spec
	}
	group := func(change func(*api.GroupSpec)) api.GroupSpec {
		spec := api.GroupSpec{Network: "net", Name: "g", Version: version, Revision: "1", Bootstrap: data}
		change(&spec)
		return spec
	}
	tags := map[string]string{"": "x"}
	for name, row := range map[string]struct {
		path string
		body any
	}{
		"network domain": {"/networks/n", api.NetworkSpec{FailureDomains: []string{"A"}}},
		"network host":   {"/networks/n", api.NetworkSpec{Endpoint: &api.Endpoint{Host: "10.0.0.1"}}},
		"network port":   {"/networks/n", api.NetworkSpec{Endpoint: &api.Endpoint{Port: minPort - 1}}},
		"network tags":   {"/networks/n", api.NetworkSpec{Tags: tags}},
		"unknown member": {"/networks/n", map[string]any{"color": "red"}},
		"no object":      {"/networks/n", []string{}},
		"long key":       {"/networks/" + strings.Repeat("k", 254), api.NetworkSpec{}},
		"odd key":        {"/networks/a%20b", api.NetworkSpec{}},

		"machine network": {"/machines/m", machine(func(s *api.MachineSpec) { s.Network = "x" })},
		"machine name":    {"/machines/m", machine(func(s *api.MachineSpec) { s.Name = "UPPER" })},
		"long name":       {"/machines/m", machine(func(s *api.MachineSpec) { s.Name = strings.Repeat("n", 64) })},
		"machine version": {"/machines/m", machine(func(s *api.MachineSpec) { s.Version = "1.36" })},
		"no bootstrap":    {"/machines/m", machine(func(s *api.MachineSpec) { s.Bootstrap = nil })},
		"machine domain":  {"/machines/m", machine(func(s *api.MachineSpec) { s.FailureDomain = "fd-9" })},
		"machine token":   {"/machines/m", machine(func(s *api.MachineSpec) { s.ClientToken = "x" })},
		"machine tags":    {"/machines/m", machine(func(s *api.MachineSpec) { s.Tags = tags })},

		"group network":   {"/groups/g", group(func(s *api.GroupSpec) { s.Network = "x" })},
		"group name":      {"/groups/g", group(func(s *api.GroupSpec) { s.Name = strings.Repeat("n", maxNamePrefix+1) })},
		"too few":         {"/groups/g", group(func(s *api.GroupSpec) { s.Replicas = -1 })},
		"too many":        {"/groups/g", group(func(s *api.GroupSpec) { s.Replicas = maxInstances + 1 })},
		"group version":   {"/groups/g", group(func(s *api.GroupSpec) { s.Version = "" })},
		"group revision":  {"/groups/g", group(func(s *api.GroupSpec) { s.Revision = "" })},
		"group domain":    {"/groups/g", group(func(s *api.GroupSpec) { s.FailureDomains = []string{"x"} })},
		"group bootstrap": {"/groups/g", group(func(s *api.GroupSpec) { s.Bootstrap = nil })},
	} {
		t.Run(name, func(*testing.T) { w.refused(api.InvalidParameters, http.MethodPut, row.path, row.body) })
	}
	w.refused(api.InvalidParameters, http.MethodGet, "/machines?tag=x", nil)
	w.refused(api.InvalidParameters, http.MethodGet, "/events?after=x", nil)
	for _, path := range []string{"/networks/x", "/machines/x", "/groups/x", "/networks/x/kubeconfig"} {
		w.refused(api.NotFound, http.MethodGet, path, nil)
	}
	w.refused(api.NotFound, http.MethodPost, "/machines/x/vanish", nil)
	longest := group(func(s *api.GroupSpec) { s.Name = strings.Repeat("n", maxNamePrefix) })
	w.must(http.MethodPut, "/groups/"+strings.Repeat("k", 253), longest, nil)
	if counts := w.counts(); counts.Networks.Created != 1 || counts.Machines.Created != 0 {
		t.Errorf("counts: %+v", counts)
	}
}

// TestBodyLimit sends a body of exactly the limit, and one byte more.
func TestBodyLimit(t *testing.T) {
	w := newFixture(t, Config{})
	for extra, want := range map[int]int{0: http.StatusOK, 1: http.StatusRequestEntityTooLarge} {
		body := "{}" + strings.Repeat(" ", maxBody-2+extra)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.URL+"/networks/net", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%d bytes: %d %s", len(body), response.StatusCode, answer)
		}
	}
}

// TestToken wants a bearer token.
func TestToken(t *testing.T) {
	w := newFixture(t, Config{Token: "secret"})
	for _, wrong := range []string{"", "secre", "secret2"} {
		stranger := &api.Client{URL: w.URL, Token: wrong}
		failure := &api.Error{}
		err := stranger.Do(t.Context(), http.MethodGet, "/counts", nil, nil)
		if !errors.As(err, &failure) || failure.Reason != api.CredentialsInvalid || failure.Status != 401 {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestRequestLimit has as many requests hang as may be answered at a time, and one more.
func TestRequestLimit(t *testing.T) {
	w := newFixture(t, Config{})
	rule := api.Rule{Path: "/networks/*", Action: api.ActionHang}
	w.must(http.MethodPut, "/faults", api.Faults{Rules: []api.Rule{rule}}, nil)
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	transport := &http.Transport{DisableKeepAlives: true}
	hanging := &api.Client{URL: w.URL, HTTP: &http.Client{Transport: transport}}
	var group sync.WaitGroup
	for range maxRequests {
		group.Go(func() { _ = hanging.Do(ctx, http.MethodGet, "/networks/net", nil, nil) })
	}
	w.wait("all hang", func() bool { return len(w.cloud.slots) == maxRequests })
	w.refused(api.Unavailable, http.MethodGet, "/counts", nil)
	cancel()
	group.Wait()
	w.wait("the cloud answers", func() bool { return len(w.cloud.slots) == 0 })
	w.counts()
}
