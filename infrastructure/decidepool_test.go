// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// TestPlan has machines as words: their revision, + if they are ready, ! if they are preferred, ~ if they are drained,
// - if a health check wants them replaced, x if they are being deleted. They were made in their order.
func TestPlan(t *testing.T) {
	for _, c := range []struct {
		reason, members string
		wanted          int
		want            string
	}{
		{"makes what is missing at once", "", 3, "create 3"},
		{"leaves alone what is as it should be", "n+ n+", 2, ""},
		{"does not count what is being deleted", "n+ n+x", 2, "create 1"},
		{"removes the oldest", "n+ n+ n+", 2, "remove 0"},
		{"removes what is not ready before the oldest", "n+ n n+", 2, "remove 1"},
		{"removes an old revision before what is not ready", "n+ n+ o+", 2, "remove 2"},
		{"removes what is preferred before everything", "n+ o+ n+!", 2, "remove 2"},
		{"removes what leaves already before what is preferred", "n+ n+! n+~", 2, "remove 2"},
		{"replaces what has failed", "n+ n-", 2, "create 1remove 1"},
		{"replaces what has failed only once", "n+ n-~", 2, "create 1"},
		{"waits for what replaces it", "n+ n-x n", 2, ""},
		{"has one less where one failed", "n+ n+- n+", 2, "remove 1"},
		{"replaces all that have failed", "n- n-", 2, "create 2remove 0 1"},
		{"replaces what has failed in a rollout", "o+ o- n", 2, "remove 1"},
		{"scales to nothing", "n+ n", 0, "remove 1 0"},
		{"scales to nothing what has failed", "n+ n-", 0, "remove 1 0"},
		{"begins a rollout with one more", "o+ o+", 2, "create 1"},
		{"waits for the new one", "o+ o+ n", 2, ""},
		{"removes one old for one new", "o+ o+ n+", 2, "remove 0"},
		{"goes on when the old one is going", "o+x o+ n+", 2, "create 1"},
		{"makes new ones where it scales up in a rollout", "o+ n+", 3, "create 1"},
		{"keeps what is ready while a new one is pending, also when scaling down", "o+ o+ o+ n", 2, "remove 0"},
	} {
		var members []member
		for i, word := range strings.Fields(c.members) {
			members = append(members, member{
				name: strconv.Itoa(i), revision: word[:1], ready: strings.Contains(word, "+"),
				preferred: strings.Contains(word, "!"), deleting: strings.Contains(word, "x"),
				leaving: strings.Contains(word, "~"), failed: strings.Contains(word, "-"),
				created: time.Unix(int64(i), 0),
			})
		}
		got, todo := "", plan(members, "n", c.wanted)
		if todo.create > 0 {
			got = fmt.Sprintf("create %d", todo.create)
		}
		if len(todo.remove) > 0 {
			got += "remove " + strings.Join(todo.remove, " ")
		}
		if got != c.want {
			t.Errorf("%s: %q of %q: %q, want %q", c.reason, c.members, strconv.Itoa(c.wanted), got, c.want)
		}
	}
}

// An ID leaves the list once two answers lacked it, at least 30 s apart.
func TestNextList(t *testing.T) {
	now := time.Unix(1000, 0)
	recorded := []string{"a", "b"}
	list, since := nextList(recorded, []string{"a", "c"}, nil, nil, now)
	if d := cmp.Diff([]string{"a", "b", "c"}, list); d != "" {
		t.Errorf("after the first answer (-want +got):\n%s", d)
	}
	list, since = nextList(list, []string{"a", "c"}, nil, since, now.Add(missingFor-time.Millisecond))
	if d := cmp.Diff([]string{"a", "b", "c"}, list); d != "" {
		t.Errorf("a moment too early (-want +got):\n%s", d)
	}
	if again, _ := nextList(list, []string{"a", "b", "c"}, nil, since, now.Add(missingFor)); len(again) != 3 {
		t.Errorf("one that is back: %v", again)
	}
	_, since = nextList(list, []string{"a", "b", "c"}, nil, since, now.Add(missingFor))
	if len(since) != 0 {
		t.Errorf("one that is back is still missing since %v", since)
	}
	_, since = nextList(recorded, []string{"a"}, nil, nil, now)
	if list, since = nextList(recorded, []string{"a"}, nil, since, now.Add(missingFor)); len(list) != 1 || len(since) != 0 {
		t.Errorf("at the limit: %v, missing %v", list, since)
	}
}

// A revision is the same while a bootstrap token is renewed, and another one for each part of a machine.
func TestRevisionOf(t *testing.T) {
	pool := func() (*infrav1.HookgateMachinePool, *clusterv1.MachinePool) {
		p, mp := &infrav1.HookgateMachinePool{}, &clusterv1.MachinePool{}
		p.Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(`{"a":1,"b":2}`)}
		mp.Spec.Template.Spec.Version = "v1.34.0"
		mp.Spec.Template.Spec.Bootstrap.DataSecretName = new("s")
		return p, mp
	}
	base := revisionOf(pool())
	p, mp := pool()
	p.Spec.Parameters.Raw = []byte(`{ "b": 2, "a": 1 }`)
	mp.Spec.Replicas = new(int32(7))
	if got := revisionOf(p, mp); got != base {
		t.Errorf("the order of parameters, or the replicas, change the revision: %s and %s", base, got)
	}
	seen := map[string]string{base: "base"}
	for name, change := range map[string]func(*infrav1.HookgateMachinePool, *clusterv1.MachinePool){
		"version": func(_ *infrav1.HookgateMachinePool, mp *clusterv1.MachinePool) {
			mp.Spec.Template.Spec.Version = "v1.35.0"
		},
		"parameters": func(p *infrav1.HookgateMachinePool, _ *clusterv1.MachinePool) { p.Spec.Parameters.Raw = []byte(`{}`) },
		"domains": func(_ *infrav1.HookgateMachinePool, mp *clusterv1.MachinePool) {
			mp.Spec.FailureDomains = []string{"x"}
		},
		"bootstrap": func(_ *infrav1.HookgateMachinePool, mp *clusterv1.MachinePool) {
			mp.Spec.Template.Spec.Bootstrap.DataSecretName = new("other")
		},
	} {
		p, mp := pool()
		change(p, mp)
		revision := revisionOf(p, mp)
		if other, ok := seen[revision]; ok {
			t.Errorf("%s and %s have the same revision", name, other)
		}
		seen[revision] = name
	}
}

// Long names become the values of labels as Cluster API makes them.
func TestLabelValue(t *testing.T) {
	if got := labelValue("pool"); got != "pool" {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("x", 64)
	if got := labelValue(long); got == long || !strings.HasPrefix(got, "hash_") || !strings.HasSuffix(got, "_z") {
		t.Errorf("got %q", got)
	}
}
