// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// takeTurns takes all turns with heavy work for another caller, and returns the function that gives them back.
func (f *fixture) takeTurns(ctx context.Context, t *testing.T) (give func()) {
	t.Helper()
	memory, err := f.memory.Reserve(ctx, budget.Caller("other"), 1)
	if err != nil {
		t.Error(err)
		return func() {}
	}
	taken := make([]budget.Work, runtime.GOMAXPROCS(0))
	for i := range taken {
		process.Eventually(t, "no small call has ended lately, and there is a turn", func() bool {
			attempt, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			taken[i] = memory.Work(attempt)
			return taken[i].Step() == nil || ctx.Err() != nil
		})
	}
	return func() {
		for i := range taken {
			taken[i].End()
		}
		memory.Release()
	}
}

// Small calls never wait for a turn, and large ones no longer than their callers.
func TestSmallCallsPassHeavyWork(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	give := f.takeTurns(t.Context(), t)
	defer func() { give() }()
	for _, size := range []int{1 << 10, budget.Step} {
		if resp := f.post(t, createPath+"/v.acme", sized(size)); resp.code != http.StatusOK {
			t.Errorf("%d bytes: got %s: %.300s", size, resp.status, resp.body)
		}
	}
	if got := f.throughGRPC(t); got.status != "Success" {
		t.Errorf("over gRPC: got %+v", got)
	}
	resp := f.post(t, createPath+"/v.acme?timeout=200ms", sized(1<<20))
	if kind := resp.header.Get(ErrorKindHeader); resp.code != http.StatusGatewayTimeout || kind != hook.Timeout.String() {
		t.Errorf("a large one: got %s %s: %.300s", resp.status, kind, resp.body)
	}
	give()
	give = func() {}
	if resp := f.post(t, createPath+"/v.acme", sized(1<<20)); resp.code != http.StatusOK {
		t.Errorf("a large one in its turn: got %s: %.300s", resp.status, resp.body)
	}
}

// A large call has no turn while its extension works.
func TestNoTurnIsHeldDuringACall(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		f.takeTurns(r.Context(), t)() // or the call ends first
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	})
	if resp := f.post(t, createPath+"/v.acme", sized(2<<20)); resp.code != http.StatusOK {
		t.Errorf("over JSON: got %s: %.300s", resp.status, resp.body)
	}
	large := &hooksv1alpha1.BeforeClusterCreateRequest{
		Handler: "v.acme", Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)},
		UnknownMembers: map[string]*hooksv1alpha1.JSON{"pad": {Raw: []byte(`"` + strings.Repeat("x", 2<<20) + `"`)}},
	}
	if _, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(), large); err != nil {
		t.Errorf("over gRPC: %v", err)
	}
}

// An extension whose answers could not be read in time because others had the turns is not blamed for that.
func TestWaitingForATurnOpensNoCircuit(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"Success","pad":"`+strings.Repeat("x", 2*budget.Step)+`"}`)
	})
	if resp := f.post(t, createPath+"/v.acme", createBody); resp.code != http.StatusOK {
		t.Fatalf("got %s: %.300s", resp.status, resp.body)
	}
	f.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{Timeout: 300 * time.Millisecond}})
	defer f.takeTurns(t.Context(), t)()
	for range 2 * limits.DefaultFailuresInARow {
		resp := f.post(t, createPath+"/v.acme", createBody)
		if kind := resp.header.Get(ErrorKindHeader); kind != hook.Timeout.String() {
			t.Fatalf("got %s %s: %.300s", resp.status, kind, resp.body)
		}
	}
}

// Steps of a chain that are called at the same time take turns of their own, which the race detector sees.
func TestStepsTakeTurnsOfTheirOwn(t *testing.T) {
	f := newFixture(t, nil)
	f.registerREST(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"status":"Success"}`)
	}, handlerOf("u", "ValidateTopology", hook.Fail), handlerOf("v", "ValidateTopology", hook.Fail))
	f.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "cached", CacheTTL: 10 * time.Millisecond}})
	f.registry.SetChains([]registry.Chain{{
		Name: "chain", Hook: hookOf(t, "ValidateTopology").GroupHook(),
		Steps: []registry.ChainStep{{Handler: "u.acme"}, {Handler: "v.acme"}},
	}})
	body := `{"settings":{"a":"` + strings.Repeat("x", 2*budget.Step) + `"}}`
	for range 10 {
		if resp := f.post(t, hookOf(t, "ValidateTopology").Path("chain"), body); resp.code != http.StatusOK {
			t.Fatalf("got %s: %.300s", resp.status, resp.body)
		}
	}
}

// A rule of a topology whose expressions cost much waits for a turn, however small its request is, and another does not.
func TestCostlyRulesTakeTurns(t *testing.T) {
	const ten = "[1,2,3,4,5,6,7,8,9,10]"
	for condition, want := range map[string]string{
		"request.items.size() > 0": "",
		ten + ".exists(a, " + ten + ".exists(b, " + ten + ".exists(c, a * b * c == request.items.size())))": hook.Timeout.String(),
	} {
		f := newRuled(t, "ValidateTopology", v1alpha1.HookRuleEnforce, "validations: [{if: '"+condition+"', message: '\"no\"'}]")
		give := f.takeTurns(t.Context(), t)
		resp := f.post(t, hookOf(t, "ValidateTopology").Path("rule.r")+"?timeout=500ms", `{"items":[]}`)
		if kind := resp.header.Get(ErrorKindHeader); kind != want {
			t.Errorf("%s: got %s %q, want %q: %.300s", condition, resp.status, kind, want, resp.body)
		}
		give()
	}
}
