// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// places is a cluster with a rule that gives out places, and with Clusters that want one.
type places struct {
	client.Client
	rule     string
	clusters []*unstructured.Unstructured
}

// ask asks a replica, as Cluster API would, whether the upgrade of a Cluster may begin.
func (p *places) ask(t testing.TB, r *replica, cluster *unstructured.Unstructured) bool {
	t.Helper()
	raw, err := cluster.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	reg, ok := r.registry.Snapshot().Registration(p.rule)
	if !ok {
		t.Fatal("the rule is not registered")
	}
	got, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: raw},
	}, policy.Guard{})
	if err != nil {
		t.Errorf("%s: %v", cluster.GetName(), err)
		return false
	}
	answer, _ := got.(*hooksv1alpha1.BeforeClusterUpgradeResponse)
	if want := fmt.Sprintf("waits: all places for %q are taken (2)", cluster.GetLabels()["region"]); answer.GetRetryAfterSeconds() != 0 && answer.GetMessage() != want {
		t.Errorf("%s: got %v", cluster.GetName(), answer)
	}
	return answer.GetRetryAfterSeconds() == 0
}

// race asks all replicas for all Clusters at the same time, each twice, and returns those that may go on.
func (p *places) race(t testing.TB, replicas ...*replica) (passed []string) {
	t.Helper()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range 2 {
		for _, r := range replicas {
			for _, cluster := range p.clusters {
				asking.Go(func() {
					if p.ask(t, r, cluster) {
						mu.Lock()
						defer mu.Unlock()
						if !slices.Contains(passed, cluster.GetName()) {
							passed = append(passed, cluster.GetName())
						}
					}
				})
			}
		}
	}
	asking.Wait()
	slices.Sort(passed)
	return passed
}

// records returns the records of the places.
func (p *places) records(t testing.TB) []v1alpha1.ClusterRecord {
	t.Helper()
	var list v1alpha1.ClusterRecordList
	if err := p.List(t.Context(), &list, client.MatchingLabels{"hookgate.dev/hook-rule": p.rule}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// taken returns the Clusters that have a place, by name.
func (p *places) taken(t testing.TB) (names []string) {
	t.Helper()
	for _, record := range p.records(t) {
		if !record.Spec.Place.Since.IsZero() {
			names = append(names, record.Spec.ClusterName)
		}
	}
	slices.Sort(names)
	return names
}

// expectTwoEach fails if there are not two Clusters of each region, or if others have the places.
func (p *places) expectTwoEach(t testing.TB, passed []string) {
	t.Helper()
	regions := map[byte]int{}
	for _, name := range passed {
		regions[name[0]]++
	}
	if regions['n'] != 2 || regions['s'] != 2 {
		t.Errorf("not two Clusters of each region may go on: %v", passed)
	}
	if taken := p.taken(t); !slices.Equal(taken, passed) {
		t.Errorf("places are of %v, and %v may go on", taken, passed)
	}
}

func (p *places) cluster(name string) *unstructured.Unstructured {
	return p.clusters[slices.IndexFunc(p.clusters, func(c *unstructured.Unstructured) bool { return c.GetName() == name })]
}

// TestRulePlaces asks two replicas for twelve Clusters at once. Two of each region may go on, whoever is asked, also after
// a restart; a place is free after the upgrade, with another version, and without the Cluster.
func TestRulePlaces(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	config, c := emptyServer(t, filepath.Join("..", "..", "deploy", "crd"))
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")},
	}); err != nil {
		t.Fatal(err)
	}
	p := &places{Client: c, rule: "two-each"}
	for i := range 12 {
		region := []string{"north", "south"}[i%2]
		cluster := object(t, fmt.Sprintf("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n"+
			"metadata: {namespace: default, name: %s%d, labels: {region: %s}}\nspec: {topology: {version: v1.36.0}}\n", region[:1], i, region))
		create(t, c, cluster)
		p.clusters = append(p.clusters, cluster)
	}
	rule := newRule(t, p.rule, "")
	if err := yaml.UnmarshalStrict([]byte("hook: BeforeClusterUpgrade\nconcurrency: {limit: 2, per: 'request.cluster.metadata.labels[\"region\"]'}"), &rule.Spec); err != nil {
		t.Fatal(err)
	}
	rule.Spec.Fail = nil
	create(t, c, rule)
	begin := func() *replica {
		r := start(t, func(s *controllers.Config) { s.REST = config })
		r.ready(t)
		return r
	}
	a, b := begin(), begin()
	awaitRule(t, c, p.rule, "Ready", "Answers BeforeClusterUpgrade as handler rule.two-each")
	passed := p.race(t, a, b)
	p.expectTwoEach(t, passed)
	p.refusesOthers(t, a, p.cluster(passed[0]))

	a.stop()
	a = begin()
	if again := p.race(t, a, b); !slices.Equal(again, passed) {
		t.Errorf("after a restart, %v may go on, and before it was %v", again, passed)
	}
	next := func(gone, what string) {
		t.Helper()
		eventually(t, what+" frees the place of "+gone, func() (string, bool) {
			taken := p.taken(t)
			return fmt.Sprint(taken), !slices.Contains(taken, gone)
		})
		p.clusters = slices.DeleteFunc(p.clusters, func(c *unstructured.Unstructured) bool { return c.GetName() == gone })
		eventually(t, "another Cluster has the place", func() (string, bool) { // once the caches show that it is free
			passed = p.race(t, a, b)
			return fmt.Sprint(passed), len(passed) == 4
		})
		p.expectTwoEach(t, passed)
	}

	reg, _ := b.registry.Snapshot().Registration(p.rule)
	if _, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.AfterClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"default","name":"` + passed[0] + `"}}`)},
	}, policy.Guard{}); err != nil {
		t.Fatal(err)
	}
	next(passed[0], "AfterClusterUpgrade")

	changed := p.cluster(passed[0])
	patch := client.MergeFrom(changed.DeepCopy())
	if err := unstructured.SetNestedField(changed.Object, "v1.35.0", "spec", "topology", "version"); err != nil {
		t.Fatal(err)
	}
	if err := c.Patch(t.Context(), changed, patch); err != nil {
		t.Fatal(err)
	}
	next(passed[0], "another version")

	if err := c.Delete(t.Context(), p.cluster(passed[3])); err != nil {
		t.Fatal(err)
	}
	next(passed[3], "the end of the Cluster")
	p.skips(t, a, passed)
	p.onlyReads(t, config)
	p.restores(t)
	p.ends(t, rule)
}

// refusesOthers asks for Clusters that are not in the cluster: the error says so, and no place is lost.
func (p *places) refusesOthers(t *testing.T, r *replica, has *unstructured.Unstructured) {
	t.Helper()
	reg, _ := r.registry.Snapshot().Registration(p.rule)
	for request, want := range map[string]string{
		`{"metadata":{"namespace":"default","name":"nope","labels":{"region":"west"}}}`: `HookRule "two-each" gives Cluster "default/nope" no place: the gateway's cluster has no such Cluster`,
		`{"metadata":{"namespace":"default","name":"` + has.GetName() + `","uid":"other","labels":{"region":"west"}}}`: fmt.Sprintf(
			`HookRule "two-each" gives Cluster "default/%s" no place: the request has uid "other", but the Cluster has uid %q`, has.GetName(), has.GetUID()),
	} {
		_, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.BeforeClusterUpgradeRequest{
			Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(request)},
		}, policy.Guard{})
		if got := fmt.Sprint(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !slices.Contains(p.taken(t), has.GetName()) {
		t.Errorf("a request with another uid has taken the place of %s", has.GetName())
	}
}

// skips lets a Cluster pass by an annotation, and looks for the event.
func (p *places) skips(t *testing.T, r *replica, passed []string) {
	t.Helper()
	waits := p.clusters[slices.IndexFunc(p.clusters, func(c *unstructured.Unstructured) bool { return !slices.Contains(passed, c.GetName()) })]
	patch := client.MergeFrom(waits.DeepCopy())
	waits.SetAnnotations(map[string]string{v1alpha1.SkipHoldAnnotation: p.rule})
	if err := p.Patch(t.Context(), waits, patch, client.FieldOwner("on-call")); err != nil {
		t.Fatal(err)
	}
	if !p.ask(t, r, waits) || !slices.Contains(p.taken(t), waits.GetName()) {
		t.Errorf("%s does not go on, or without a place: %v", waits.GetName(), p.taken(t))
	}
	want := `HookRule "two-each" holds the Cluster, but the Cluster goes on because of the annotation hookgate.dev/skip-hold, which the field manager "on-call" has set; the rule says: waits: all places for `
	eventually(t, "an event says who", func() (string, bool) {
		var list eventsv1.EventList
		if err := p.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		var notes []string
		for _, e := range list.Items {
			if e.Regarding.UID == waits.GetUID() && e.Reason == "HoldLifted" {
				notes = append(notes, e.Note)
			}
		}
		return fmt.Sprint(notes), len(notes) == 1 && strings.HasPrefix(notes[0], want)
	})
}

// onlyReads asks a gateway that writes nothing: it gives out no place, and a Cluster that has none needs none.
func (p *places) onlyReads(t *testing.T, config *rest.Config) {
	t.Helper()
	r := start(t, func(s *controllers.Config) { s.REST, s.ReadOnly = config, true })
	r.ready(t)
	reg, _ := r.registry.Snapshot().Registration(p.rule)
	asks := func(request proto.Message) string {
		_, err := reg.InProcess.Answer(t.Context(), request, policy.Guard{})
		return fmt.Sprint(err)
	}
	other := &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"namespace":"default","name":"w","labels":{"region":"west"}}}`)}
	const writesNothing = `HookRule "two-each" has to write a ClusterRecord, but this gateway writes nothing (--read-only)`
	if got := asks(&hooksv1alpha1.BeforeClusterUpgradeRequest{Cluster: other}); got != writesNothing {
		t.Errorf("before the upgrade: got %q", got)
	}
	if got := asks(&hooksv1alpha1.AfterClusterUpgradeRequest{Cluster: other}); got != "<nil>" {
		t.Errorf("after the upgrade: got %q", got)
	}
}

// ends keeps the hook of the rule from changing, and takes its concurrency away, which frees all places.
func (p *places) ends(t *testing.T, rule *v1alpha1.HookRule) {
	t.Helper()
	changed := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"hook":"BeforeWorkersUpgrade"}}`))
	if err := p.Patch(t.Context(), rule, changed); err == nil || !strings.Contains(err.Error(), "hook of a rule with concurrency cannot change") {
		t.Errorf("the hook is changed: %v", err)
	}
	if taken := p.taken(t); len(taken) != 5 {
		t.Errorf("places are of %v", taken)
	}
	without := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"concurrency":null,"hold":[{"if":"true","message":"'no'"}]}}`))
	if err := p.Patch(t.Context(), rule, without); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the places are free", func() (string, bool) {
		taken := p.taken(t)
		return fmt.Sprint(taken), len(taken) == 0
	})
}

// restores takes a backup as docs/backup.md says, and creates its objects in an empty API server: the Clusters that had
// places have them, no other gets one, and the Clusters own them again.
func (p *places) restores(t *testing.T) {
	t.Helper()
	config, c := emptyServer(t, filepath.Join("..", "..", "deploy", "crd"))
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")},
	}); err != nil {
		t.Fatal(err)
	}
	passed := p.taken(t)
	// The gateway that is here works on while the objects come, in the order that is worst for it.
	r := start(t, func(s *controllers.Config) { s.REST = config })
	r.ready(t)
	again := &places{Client: c, rule: p.rule}
	for _, kind := range []string{"ClusterRecord", "Cluster", "HookRule"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("hookgate.dev/v1alpha1")
		if list.SetKind(kind + "List"); kind == "Cluster" {
			list.SetAPIVersion("cluster.x-k8s.io/v1beta2")
		}
		if err := p.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			for _, member := range []string{"uid", "resourceVersion", "ownerReferences", "managedFields", "creationTimestamp"} {
				unstructured.RemoveNestedField(o.Object, "metadata", member)
			}
			delete(o.Object, "status")
			create(t, c, o)
			if kind == "Cluster" {
				again.clusters = append(again.clusters, o)
			}
		}
	}
	awaitRule(t, c, p.rule, "Ready", "Answers BeforeClusterUpgrade as handler rule.two-each")
	if got := again.race(t, r); !slices.Equal(got, passed) {
		t.Errorf("%v may go on, and before the backup it was %v", got, passed)
	}
	eventually(t, "the Clusters own their places", func() (string, bool) {
		records := again.records(t)
		for _, record := range records {
			owners := record.GetOwnerReferences()
			if len(owners) != 1 || owners[0].UID != again.cluster(record.Spec.ClusterName).GetUID() {
				return fmt.Sprintf("%s: %v", record.Name, owners), false
			}
		}
		return strconv.Itoa(len(records)), len(records) == len(passed)
	})
}
