// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/status"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func named(name, cluster string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "n", Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: cluster}, OwnerReferences: owners,
	}
}

func owner(kind, name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: name}
}

func condition(kind string, is bool, reason, message string, since time.Duration) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: ago(since)}
	if is {
		c.Status = metav1.ConditionTrue
	}
	return c
}

var ready = condition(infrav1.ReadyCondition, true, infrav1.ReadyReason, "", time.Hour)

func machine(name, cluster, pool, providerID string, conditions ...metav1.Condition) infrav1.HookgateMachine {
	m := infrav1.HookgateMachine{ObjectMeta: named(name, cluster)}
	if pool != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: infrav1.GroupVersion.String(), Kind: infrav1.HookgateMachinePoolKind, Name: pool}}
	}
	m.Spec.ProviderID, m.Status.Conditions = providerID, conditions
	return m
}

// objects are a Cluster whose machines are as they should be but for one that is gone, one that is being made and one
// that cannot be deleted; a pool of machines and one of a group that lack an instance; and a Cluster that is paused.
func objects() *Objects {
	a := infrav1.HookgateCluster{ObjectMeta: named("infra-a", "a", owner("Cluster", "a"))}
	a.Spec.InfrastructureClassName, a.Status.Conditions = "rack", []metav1.Condition{ready}
	b := infrav1.HookgateCluster{ObjectMeta: named("b", "b")}
	b.Spec.InfrastructureClassName = "rack"
	b.Status.Conditions = []metav1.Condition{
		condition(infrav1.ReadyCondition, false, "Provisioning", "", time.Hour),
		condition(infrav1.PausedCondition, true, infrav1.PausedReason, "the Cluster is paused", time.Minute),
	}
	deleting := machine("deleting", "a", "", "x://2", condition(infrav1.ReadyCondition, false, infrav1.DeletingReason, "", time.Minute),
		condition(infrav1.SyncedCondition, false, infrav1.CallFailedReason, "no answer", 2*time.Minute))
	deleting.DeletionTimestamp = new(ago(time.Minute))
	size := func(n int32, name string) clusterv1.MachinePool {
		p := clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}
		p.Spec.Replicas = &n
		return p
	}
	pool := infrav1.HookgateMachinePool{ObjectMeta: named("pool", "a", owner("MachinePool", "mp"))}
	pool.Status.Replicas = new(int32(1))
	group := infrav1.HookgateMachinePool{ObjectMeta: named("group", "a", owner("MachinePool", "mg"))}
	group.Spec.InstanceManagement, group.Spec.ProviderIDList = infrav1.InstanceManagementGroup, []string{"x://7", "x://8"}
	group.Status.Replicas, group.Status.Conditions = new(int32(1)), []metav1.Condition{ready}
	managed := size(5, "managed")
	managed.Annotations = map[string]string{clusterv1.ReplicasManagedByAnnotation: "autoscaler"}
	own := infrav1.HookgateMachinePool{ObjectMeta: named("own", "a", owner("MachinePool", "managed"))}
	return &Objects{
		Clusters: []infrav1.HookgateCluster{b, a},
		Machines: []infrav1.HookgateMachine{
			machine("ready", "a", "", "x://1", ready), deleting,
			machine("gone", "a", "", "x://3", condition(infrav1.ReadyCondition, false, infrav1.InstanceGoneReason, "it vanished", 20*time.Minute)),
			machine("made", "a", "", "", condition(infrav1.ReadyCondition, false, "Provisioning", "boots", time.Minute)),
			machine("p1", "a", "pool", "x://4", ready),
		},
		Pools: []infrav1.HookgateMachinePool{pool, group, own}, MachinePools: []clusterv1.MachinePool{size(2, "mp"), size(2, "mg"), managed},
	}
}

func TestSummary(t *testing.T) {
	at := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	row := func(name, state string, since *time.Time, message string, instances, count int) status.InfrastructureObject {
		return status.InfrastructureObject{
			Namespace: "n", Name: name, Cluster: "a", Class: "rack", State: state, Since: since, Message: message,
			Instances: instances, Objects: count,
		}
	}
	with := func(o status.InfrastructureObject, change func(*status.InfrastructureObject)) status.InfrastructureObject {
		change(&o)
		return o
	}
	id := func(id string) func(*status.InfrastructureObject) {
		return func(o *status.InfrastructureObject) { o.ProviderID = id }
	}
	wanted := func(n int) func(*status.InfrastructureObject) {
		return func(o *status.InfrastructureObject) { o.Wanted = &n }
	}
	want := &status.Infrastructure{
		Now: now,
		Clusters: []status.InfrastructureObject{
			with(row("b", "Paused", at(time.Minute), "the Cluster is paused", 0, 0), func(o *status.InfrastructureObject) { o.Cluster = "b" }),
			row("infra-a", "Ready", at(time.Hour), "", 4, 7),
		},
		Machines: []status.InfrastructureObject{
			with(row("deleting", "Deleting", at(time.Minute), "", 1, 1), func(o *status.InfrastructureObject) {
				o.ProviderID = "x://2"
				o.Failure = &status.FailedCall{Hook: "DeleteMachine", Reason: "CallFailed", Message: "no answer", Since: now.Add(-2 * time.Minute)}
			}),
			with(row("gone", "InstanceGone", at(20*time.Minute), "it vanished", 0, 1), id("x://3")),
			row("made", "Provisioning", at(time.Minute), "boots", 0, 1),
			with(row("p1", "Ready", at(time.Hour), "", 1, 1), id("x://4")), with(row("ready", "Ready", at(time.Hour), "", 1, 1), id("x://1")),
		},
		Pools: []status.InfrastructureObject{
			with(row("group", "Ready", at(time.Hour), "", 1, 2), wanted(2)), row("own", "Unknown", nil, "", 0, 0),
			with(row("pool", "Unknown", nil, "", 1, 1), wanted(2)),
		},
	}
	if diff := cmp.Diff(want, objects().Summary(now)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// A difference is as old as the first look at it that saw it, and forgotten when it ends.
func TestCollector(t *testing.T) {
	clock, have := now, objects()
	c := NewCollector(func() (*Objects, error) { return have, nil }, func() time.Time { return clock })
	const since = "hookgate_infrastructure_instances_differ_since_timestamp_seconds"
	differ := func(kinds ...string) string {
		var text strings.Builder
		text.WriteString("# HELP " + since + " " + Descriptions[4].Help + "\n# TYPE " + since + " gauge\n")
		for _, kind := range kinds {
			text.WriteString(since + `{infrastructure_class="rack",kind="` + kind + "\"} 1.767323045e+09\n")
		}
		return text.String()
	}
	compare := func(want string, names ...string) {
		t.Helper()
		if err := testutil.CollectAndCompare(c, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	compare(differ("HookgateCluster", "HookgateMachinePool"), since)
	clock = now.Add(time.Minute)
	compare(differ("HookgateCluster", "HookgateMachinePool"), since)
	have.Pools[1].Status.Replicas = new(int32(2))
	have.MachinePools[0].Spec.Replicas = new(int32(1))
	compare(differ("HookgateCluster"), since)
	var text strings.Builder
	for _, m := range []struct{ name, help, series string }{
		{Descriptions[0].Name, Descriptions[0].Help, `
{infrastructure_class="rack",kind="HookgateCluster",state="Paused"} 1
{infrastructure_class="rack",kind="HookgateCluster",state="Ready"} 1
{infrastructure_class="rack",kind="HookgateMachine",state="NotReady"} 3
{infrastructure_class="rack",kind="HookgateMachine",state="Ready"} 2
{infrastructure_class="rack",kind="HookgateMachinePool",state="NotReady"} 2
{infrastructure_class="rack",kind="HookgateMachinePool",state="Ready"} 1
`},
		{Descriptions[1].Name, Descriptions[1].Help, `
{infrastructure_class="rack",kind="HookgateMachine"} 1.767321845e+09
`},
		{Descriptions[2].Name, Descriptions[2].Help, `
{hook="DeleteMachine",infrastructure_class="rack",kind="HookgateMachine"} 1
`},
		{Descriptions[3].Name, Descriptions[3].Help, `
{infrastructure_class="rack",source="Backend"} 5
{infrastructure_class="rack",source="Objects"} 7
`},
	} {
		text.WriteString("# HELP " + m.name + " " + m.help + "\n# TYPE " + m.name + " gauge\n")
		for line := range strings.Lines(strings.TrimPrefix(m.series, "\n")) {
			text.WriteString(m.name + line)
		}
	}
	compare(text.String(), Descriptions[0].Name, Descriptions[1].Name, Descriptions[2].Name, Descriptions[3].Name)
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

// More classes than metrics tell apart are counted as one.
func TestManyClasses(t *testing.T) {
	have := &Objects{}
	for i := range 150 {
		c := infrav1.HookgateCluster{ObjectMeta: named(strings.Repeat("x", i+1), strings.Repeat("x", i+1))}
		c.Spec.InfrastructureClassName = strings.Repeat("c", i+1)
		have.Clusters = append(have.Clusters, c)
	}
	c := NewCollector(func() (*Objects, error) { return have, nil }, time.Now)
	if n := testutil.CollectAndCount(c, Descriptions[0].Name); n != 101 {
		t.Errorf("%d series, want 101", n)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(c)
}
