// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// namingGate admits each caller by the name that it says.
type namingGate struct{}

func (namingGate) Challenge() string { return "" }

func (namingGate) Admit(_ context.Context, c auth.Credentials, _ *catalog.Hook) (auth.Admission, error) {
	return auth.Admission{Caller: auth.Caller{Name: strings.Join(c.Authorization, "")}}, nil
}

// TestNamesakesShareNothing checks that no call of a second management cluster about a Cluster with the name of one of
// the first gets an answer that was kept for that, or reaches a handler: so that it changes no hold, circuit or rollout.
func TestNamesakesShareNothing(t *testing.T) {
	const hooksPath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	f := newGatedFixture(t, nil, namingGate{})
	var calls atomic.Int64
	f.registerREST(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		calls.Add(1)
		_, _ = io.WriteString(w, `{"status":"Success","retryAfterSeconds":7}`)
	}, handlerOf("v", "BeforeClusterCreate", hook.Fail), handlerOf("p", "GeneratePatches", hook.Fail),
		handlerOf("u", "UpdateMachine", hook.Fail))
	f.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{Name: "cached", CacheTTL: 3 * time.Second}})

	lifecycle := func(uid string) string {
		return fmt.Sprintf(`{"cluster":{"metadata":{"namespace":"n","name":"c","uid":%q}}}`, uid)
	}
	patches := func(uid string) string {
		return fmt.Sprintf(`{"variables":[{"name":"builtin","value":{"cluster":{"namespace":"n","name":"c","uid":%q}}}],"items":[]}`, uid)
	}
	update := `{"desired":{"machine":{"metadata":{"namespace":"n","name":"m"},"spec":{"clusterName":"c"}}}}`
	for i, tt := range []struct {
		reason, caller, path, body string
		code                       int
		reached                    int64
	}{
		{"the first", "east", "beforeclustercreate/v.acme", lifecycle("1"), 200, 1},
		{"its patches", "east", "generatepatches/p.acme", patches("1"), 200, 2},
		{"from the cache", "east", "generatepatches/p.acme", patches("1"), 200, 2},
		{"without a UID, before its caller is known", "west", "updatemachine/u.acme", update, 200, 3},
		{"another one's lifecycle hook", "west", "beforeclustercreate/v.acme", lifecycle("2"), 409, 3},
		{"another one's patches", "west", "generatepatches/p.acme", patches("2"), 409, 3},
		{"another one's Machine", "west", "updatemachine/u.acme", update, 409, 3},
		{"the Machine of the first", "east", "updatemachine/u.acme", update, 200, 4},
		{"a second caller of the first", "kcp", "beforeclustercreate/v.acme", lifecycle("1"), 200, 5},
		{"made again", "kcp", "beforeclustercreate/v.acme", lifecycle("3"), 200, 6},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+hooksPath+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", tt.caller)
		resp, err := f.rest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tt.code || calls.Load() != tt.reached {
			t.Errorf("%d, %s: %d after %d calls of handlers, want %d after %d: %s",
				i, tt.reason, resp.StatusCode, calls.Load(), tt.code, tt.reached, body)
		}
		if want := "Cluster n/c: another management cluster has a Cluster of this namespace and name: " +
			"use one gateway for each management cluster"; tt.code == 409 && !strings.Contains(string(body), want) {
			t.Errorf("%s: %s lacks %q", tt.reason, body, want)
		}
	}
}

// TestNamesakes checks which calls are refused, in the order of the calls.
func TestNamesakes(t *testing.T) {
	type call struct {
		caller, uid string
		after       time.Duration
		refused     bool
	}
	long := limits.NamesakeTime + 1
	for name, calls := range map[string][]call{
		"made again":                    {{"a", "1", 0, false}, {"a", "2", 0, false}, {"a", "2", 0, false}},
		"no identity, a UID returns":    {{"", "1", 0, false}, {"", "2", 0, false}, {"", "1", 0, false}, {"", "2", 0, true}, {"", "1", 0, false}},
		"no identity, the first leaves": {{"", "1", 0, false}, {"", "2", 0, false}, {"", "1", 0, false}, {"", "2", 0, true}, {"", "2", long, false}},
		"another caller":                {{"a", "1", 0, false}, {"b", "2", 0, true}, {"b", "2", limits.NamesakeTime, true}, {"b", "2", 1, false}},
		"another caller of the same":    {{"a", "1", 0, false}, {"b", "1", 0, false}, {"b", "2", 0, false}, {"a", "2", 0, false}},
		"no UID":                        {{"a", "1", 0, false}, {"b", "", 0, false}, {"b", "2", 0, true}, {"b", "", 0, true}, {"b", "", long, false}},
	} {
		n, now := newNamesakes(), time.Now()
		for i, c := range calls {
			now = now.Add(c.after)
			raw := fmt.Appendf(nil, `{"metadata":{"namespace":"n","name":"c","uid":%q}}`, c.uid)
			err := n.check(c.caller, &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: raw}}, now)
			if hook.KindOf(err) == hook.Ambiguous != c.refused || err != nil != c.refused {
				t.Errorf("%s: call %d: %v, refused: %t", name, i, err, c.refused)
			}
		}
		gone := &machinesv1alpha1.AfterClusterDeleteRequest{
			Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n","name":"c","uid":"9"}}`)},
		}
		if err := n.check("z", gone, now); err != nil {
			t.Errorf("%s: a Cluster that is gone: %v", name, err)
		}
	}
}

// TestNamesakesAreBounded checks that what is remembered of a Cluster has a limit.
func TestNamesakesAreBounded(t *testing.T) {
	var list []string
	for i := range 2 * limits.NamesakeMemory {
		list = remember(list, fmt.Sprint(i))
	}
	if len(list) != limits.NamesakeMemory || list[0] != fmt.Sprint(limits.NamesakeMemory) {
		t.Errorf("remembered %q", list)
	}
}

func BenchmarkNamesakes(b *testing.B) {
	raw := fmt.Appendf(nil, `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"namespace":"n","name":"c","uid":"1"},"spec":{"a":%q}}`,
		strings.Repeat("x", 4000))
	n, r := newNamesakes(), &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: raw}}
	for b.Loop() {
		if err := n.check("a", r, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}
