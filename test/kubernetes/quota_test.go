// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// quota is a cluster with the rule cluster-quota of examples/rules.
type quota struct {
	client.Client
	t testing.TB
}

// cluster creates a Cluster of so many machines.
func (q *quota) cluster(namespace, name string, machines int) *unstructured.Unstructured {
	q.t.Helper()
	c := object(q.t, fmt.Sprintf("apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {namespace: %s, name: %s}\n"+
		"spec: {topology: {version: v1.36.0, controlPlane: {replicas: %d}}}\n", namespace, name, machines))
	create(q.t, q, c)
	return c
}

// ask asks a replica, as Cluster API would, whether a Cluster may be created.
func (q *quota) ask(r *replica, cluster *unstructured.Unstructured) string {
	q.t.Helper()
	raw, err := cluster.MarshalJSON()
	if err != nil {
		q.t.Fatal(err)
	}
	reg, ok := r.registry.Snapshot().Registration("cluster-quota")
	if !ok {
		q.t.Fatal("the rule is not registered")
	}
	got, err := reg.InProcess.Answer(q.t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: raw},
	}, policy.Guard{})
	if err != nil {
		return hook.KindOf(err).String() + ": " + err.Error()
	}
	answer, _ := got.(*hooksv1alpha1.BeforeClusterCreateResponse)
	if answer.GetRetryAfterSeconds() > 0 {
		return "waits"
	}
	return "passes"
}

// race asks all replicas for all Clusters at the same time, each twice, and returns those that pass.
func (q *quota) race(clusters []*unstructured.Unstructured, replicas ...*replica) []*unstructured.Unstructured {
	q.t.Helper()
	var mu sync.Mutex
	var asking sync.WaitGroup
	passes := map[*unstructured.Unstructured]bool{}
	for range 2 {
		for _, r := range replicas {
			for _, c := range clusters {
				asking.Go(func() {
					got := q.ask(r, c)
					mu.Lock()
					defer mu.Unlock()
					if before, ok := passes[c]; ok && before != (got == "passes") || strings.Contains(got, ":") {
						q.t.Errorf("%s is answered in two ways, or not at all: %s", c.GetName(), got)
					}
					passes[c] = got == "passes"
				})
			}
		}
	}
	asking.Wait()
	var passed []*unstructured.Unstructured
	for _, c := range clusters {
		if passes[c] {
			passed = append(passed, c)
		}
	}
	return passed
}

// begins plays Cluster API: a Cluster that is past the hook has an infrastructureRef.
func (q *quota) begins(cluster *unstructured.Unstructured) {
	q.t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"infrastructureRef":{"apiGroup":"a","kind":"A","name":"a"}}}`))
	if err := q.Patch(q.t.Context(), cluster, patch); err != nil {
		q.t.Fatal(err)
	}
}

// withoutWatch is a connection over which Clusters can be listed, and not watched.
type withoutWatch struct{ next http.RoundTripper }

func (w withoutWatch) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/clusters") && r.URL.Query().Get("watch") != "" {
		return nil, errors.New("no watch")
	}
	return w.next.RoundTrip(r)
}

// noted returns the Clusters that have a record of being let pass.
func (q *quota) noted() (names []string) {
	q.t.Helper()
	var list v1alpha1.ClusterRecordList
	if err := q.List(q.t.Context(), &list, client.MatchingLabels{"hookgate.dev/hook-rule": "cluster-quota"}); err != nil {
		q.t.Fatal(err)
	}
	for _, r := range list.Items {
		if r.Spec.Admission == nil || r.Spec.Admission.Since.IsZero() || len(r.OwnerReferences) != 1 {
			q.t.Errorf("record %s is not of a Cluster that was let pass: %+v", r.Name, r.Spec)
		}
		names = append(names, r.Namespace+"/"+r.Spec.ClusterName)
	}
	return names
}

// TestClusterQuota has two replicas decide about Clusters that are created in the same second, as the rule of
// docs/stories.md does: those pass that fit, whoever is asked and however often. One of the replicas does not see Clusters
// that are created after its start.
func TestClusterQuota(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	config, c := emptyServer(t, filepath.Join("..", "..", "deploy", "crd"))
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")},
	}); err != nil {
		t.Fatal(err)
	}
	q := &quota{Client: c, t: t}
	for _, name := range []string{"platform", "red", "blue", "green"} {
		create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	create(t, c, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "cluster-quota"}, Data: map[string]string{"red": "10", "blue": "3"},
	})
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "rules", "cluster-quota", "rule.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rule := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict(text, rule); err != nil {
		t.Fatal(err)
	}
	rule.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
	create(t, c, rule)
	begin := func(wrap func(http.RoundTripper) http.RoundTripper) *replica {
		r := start(t, func(s *controllers.Config) {
			s.REST = rest.CopyConfig(config)
			s.REST.Wrap(wrap)
		})
		r.ready(t)
		return r
	}
	blind := func(next http.RoundTripper) http.RoundTripper { return withoutWatch{next} }
	a, b := begin(nil), begin(blind) // a leads
	awaitRule(t, c, "cluster-quota", "Ready", "")

	// The name of the one that comes last is the first, and its time of creation that of the others, if not earlier.
	first, second := q.cluster("red", "c", 6), q.cluster("red", "b", 5)
	if got := q.ask(a, first) + ", " + q.ask(b, second); got != "passes, waits" {
		t.Errorf("of two Clusters, got %s", got)
	}
	if got := q.ask(b, q.cluster("red", "a", 4)); got != "passes" {
		t.Errorf("what is left is not given out: %s", got)
	}
	if got := q.ask(a, q.cluster("green", "a", 1000)); got != "passes" {
		t.Errorf("without a quota: %s", got)
	}

	var rivals []*unstructured.Unstructured
	for i := range 6 {
		rivals = append(rivals, q.cluster("blue", fmt.Sprint("c", i), 1))
	}
	passed := q.race(rivals, a, b)
	if len(passed) != 3 {
		t.Fatalf("%d Clusters of one machine pass, and the quota is 3", len(passed))
	}
	b.stop()
	b = begin(blind)
	for _, c := range passed[:2] {
		q.begins(c)
	}
	if again := q.race(rivals, a, b); fmt.Sprint(again) != fmt.Sprint(passed) {
		t.Errorf("after a restart, others pass")
	}
	for _, gone := range []*unstructured.Unstructured{passed[0], passed[2]} { // one had begun
		if err := c.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
		rivals = slices.DeleteFunc(rivals, func(c *unstructured.Unstructured) bool { return c == gone })
	}
	if again := q.race(rivals, a, b); len(again) != 3 {
		t.Errorf("two of three are gone: %d Clusters pass, one of them from before", len(again))
	}
	eventually(t, "the records of two Clusters that begin in each of red and blue, and one in green", func() (string, bool) {
		got := q.noted()
		return fmt.Sprint(got), len(got) == 5
	})
	reader := start(t, func(s *controllers.Config) { s.REST, s.ReadOnly = config, true })
	reader.ready(t)
	const writesNothing = `NotReady: HookRule "cluster-quota" has to write a ClusterRecord, but this gateway writes nothing (--read-only)`
	if noted, other := q.ask(reader, first), q.ask(reader, q.cluster("green", "b", 1)); noted != "passes" || other != writesNothing {
		t.Errorf("one that only reads says of a Cluster that was let pass: %s; of another one: %s", noted, other)
	}
	if got := q.ask(a, passed[0]); got != `NotReady: Cluster "blue/`+passed[0].GetName()+`" is not known` {
		t.Errorf("a Cluster that is gone: %s", got)
	}
}
