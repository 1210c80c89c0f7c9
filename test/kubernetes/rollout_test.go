// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// rolloutOf is a cluster with twenty Clusters, and two versions of an extension, which answer differently for those
// whose names end with d.
type rolloutOf struct {
	client.Client
	rollout    *v1alpha1.ExtensionRollout
	six, seven *serverOf
	calls      *http.Client
	run        func() *gateway
	back       map[string]bool // Clusters whose records were deleted: gateways may not have seen that yet
}

// patching returns an extension whose handler patches a version into an object.
func patching(t *testing.T, version string) *serverOf {
	t.Helper()
	x := newExtension(t)
	x.handlers = []runtimehooksv1.ExtensionHandler{handler("patch", "GeneratePatches")}
	x.answer = func(body []byte) any {
		says := version
		if !bytes.Contains(body, []byte(`d","namespace"`)) {
			says = "any"
		}
		answer := &runtimehooksv1.GeneratePatchesResponse{}
		answer.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("GeneratePatchesResponse"))
		answer.Status = runtimehooksv1.ResponseStatusSuccess
		answer.Items = []runtimehooksv1.GeneratePatchesResponseItem{{
			UID: "1", PatchType: runtimehooksv1.JSONPatchType,
			Patch: []byte(`[{"op":"add","path":"/spec/template/spec/version","value":"` + says + `"}]`),
		}}
		return answer
	}
	return x
}

// newRollout starts an API server with all of it, and an ExtensionRollout that may move every Cluster.
func newRollout(t *testing.T) *rolloutOf {
	t.Helper()
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	config, c := emptyServer(t, filepath.Join("..", "..", "deploy", "crd"))
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")},
	}); err != nil {
		t.Fatal(err)
	}
	certs := t.TempDir()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificates.In(t, certs).CAPEM)
	r := &rolloutOf{
		Client: c, back: map[string]bool{}, six: patching(t, "six"), seven: patching(t, "seven"),
		calls: &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}},
	}
	t.Cleanup(r.calls.CloseIdleConnections)
	kubeconfig := kubeconfigOf(t, config)
	r.run = func() *gateway { return startGateway(t, kubeconfig, certs) }
	for i := range 20 {
		r.cluster(t, clusterName(i), "{infrastructureRef: {name: a}, controlPlaneRef: {name: a}}")
	}
	create(t, c, newConfig(t, "acme-v6", r.six))
	create(t, c, newConfig(t, "acme-v7", r.seven))
	r.rollout = &v1alpha1.ExtensionRollout{}
	r.rollout.Name = "acme"
	r.rollout.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
	r.rollout.Spec = v1alpha1.ExtensionRolloutSpec{
		Stable: "acme-v6", Candidate: "acme-v7", CandidateFor: &v1alpha1.RolloutClusters{},
	}
	create(t, c, r.rollout)
	return r
}

// clusterName returns the name of a Cluster. The versions answer differently for five of twenty.
func clusterName(i int) string {
	if i%4 == 0 {
		return fmt.Sprintf("c%d-d", i)
	}
	return fmt.Sprintf("c%d-e", i)
}

func (r *rolloutOf) cluster(t *testing.T, name, spec string) {
	t.Helper()
	create(t, r, object(t, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {namespace: default, name: "+name+"}\nspec: "+spec+"\n"))
}

// ask returns the version that a gateway's answer has for a Cluster, or the error. If that is the candidate's, the record
// must say so already.
func (r *rolloutOf) ask(t *testing.T, g *gateway, cluster string) string {
	t.Helper()
	body := `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"GeneratePatchesRequest",` +
		`"variables":[{"name":"builtin","value":{"cluster":{"name":"` + cluster + `","namespace":"default"}}}],` +
		`"items":[{"uid":"1","holderReference":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","namespace":"default","name":"` + cluster + `","fieldPath":"spec.infrastructureRef"},` +
		`"object":{"apiVersion":"infrastructure.cluster.x-k8s.io/v1beta2","kind":"DevClusterTemplate","metadata":{"name":"t","namespace":"default"},"spec":{"template":{"spec":{}}}}}]}`
	answer, err := r.calls.Post("https://"+g.https+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/patch.acme", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got runtimehooksv1.GeneratePatchesResponse
	if err := json.Unmarshal(text, &got); err != nil || len(got.Items) != 1 {
		return string(text)
	}
	var patch []struct{ Value string }
	if err := json.Unmarshal(got.Items[0].Patch, &patch); err != nil || len(patch) != 1 {
		return string(text)
	}
	if state := r.states(t)[cluster]; patch[0].Value == "seven" && state != "Moved" && !r.back[cluster] {
		t.Errorf("the candidate's answer for %s is used, and its record says %q", cluster, state)
	}
	return patch[0].Value
}

// states returns what the records say of the Clusters, by name.
func (r *rolloutOf) states(t *testing.T) map[string]string {
	t.Helper()
	var list v1alpha1.ExtensionRolloutRecordList
	if err := r.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	states := map[string]string{}
	for i := range list.Items {
		if of := list.Items[i].Spec.Cluster; of != nil {
			states[of.Name] = string(list.Items[i].Spec.State)
		}
	}
	return states
}

// record returns the record of a Cluster.
func (r *rolloutOf) record(t *testing.T, cluster string) *v1alpha1.ExtensionRolloutRecord {
	t.Helper()
	var list v1alpha1.ExtensionRolloutRecordList
	if err := r.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Items, func(o v1alpha1.ExtensionRolloutRecord) bool {
		return o.Spec.Cluster != nil && o.Spec.Cluster.Name == cluster
	})
	if i < 0 {
		t.Fatalf("there is no record of %s", cluster)
	}
	return &list.Items[i]
}

// owns reports whether the Cluster of a record owns it.
func (r *rolloutOf) owns(t *testing.T, record *v1alpha1.ExtensionRolloutRecord) bool {
	t.Helper()
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Cluster"))
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: record.Namespace, Name: record.Spec.Cluster.Name}, cluster); err != nil {
		t.Fatal(err)
	}
	return len(record.OwnerReferences) == 1 && record.OwnerReferences[0].UID == cluster.GetUID()
}

// change changes the spec of the ExtensionRollout.
func (r *rolloutOf) change(t *testing.T, change func(*v1alpha1.ExtensionRolloutSpec)) {
	t.Helper()
	patch := client.MergeFrom(r.rollout.DeepCopy())
	change(&r.rollout.Spec)
	if err := r.Patch(t.Context(), r.rollout, patch); err != nil {
		t.Fatal(err)
	}
}

// all waits until both gateways answer with a version for a Cluster.
func (r *rolloutOf) all(t *testing.T, cluster, want string, gateways ...*gateway) {
	t.Helper()
	eventually(t, cluster+" has "+want, func() (string, bool) {
		var got []string
		for _, g := range gateways {
			got = append(got, r.ask(t, g, cluster))
		}
		return strings.Join(got, ", "), !slices.ContainsFunc(got, func(s string) bool { return s != want })
	})
}

// now fails unless each gateway answers with a version for each Cluster, at once.
func (r *rolloutOf) now(t *testing.T, want string, gateways []*gateway, clusters ...string) {
	t.Helper()
	for _, g := range gateways {
		for _, cluster := range clusters {
			if got := r.ask(t, g, cluster); got != want {
				t.Errorf("%s has %s, want %s", cluster, got, want)
			}
		}
	}
}

// TestRollout moves Clusters with two gateways, one by one: what is equal moves by itself, what differs when it is
// approved, and nothing but a deleted record moves a Cluster back.
func TestRollout(t *testing.T) {
	r := newRollout(t)
	both := []*gateway{r.run(), r.run()}
	r.awaitReady(t, "acme-v6 answers calls; calls for Clusters that have moved go to acme-v7")
	eventually(t, "15 have moved, and 5 are different", func() (string, bool) {
		for i := range 20 {
			for _, g := range both {
				if want := map[bool]string{true: "six", false: "any"}[i%4 == 0]; r.ask(t, g, clusterName(i)) != want {
					t.Errorf("%s does not have %s", clusterName(i), want)
				}
			}
		}
		count := map[string]int{}
		for _, state := range r.states(t) {
			count[state]++
		}
		return fmt.Sprint(count), count["Moved"] == 15 && count["Different"] == 5
	})
	if d := r.record(t, "c0-d").Spec.Differences; len(d) != 1 || d[0].Path == "" || d[0].Stable != `"six"` || d[0].Candidate != `"seven"` {
		t.Errorf("the differences of c0-d are %+v", d)
	}

	r.change(t, func(s *v1alpha1.ExtensionRolloutSpec) { s.Approved = []string{"default/c4-d"} })
	approve := object(t, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {namespace: default, name: c0-d}\n")
	annotate := func(value string) {
		t.Helper()
		if err := r.Patch(t.Context(), approve, client.RawPatch("application/merge-patch+json",
			[]byte(`{"metadata":{"annotations":{"`+v1alpha1.ApproveRolloutAnnotation+`":`+value+`}}}`))); err != nil {
			t.Fatal(err)
		}
	}
	annotate(`"acme-v7"`)
	r.all(t, "c4-d", "seven", both...)
	r.all(t, "c0-d", "seven", both...)
	r.now(t, "six", both, "c8-d", "c12-d", "c16-d")

	// Neither a restart nor what the ExtensionRollout or the Cluster say later moves a Cluster back.
	annotate("null")
	r.change(t, func(s *v1alpha1.ExtensionRolloutSpec) {
		s.Approved, s.CandidateFor.Percent, s.NewClusters = nil, new(int32(0)), v1alpha1.NewClustersCandidate
	})
	for _, g := range both {
		g.kill()
	}
	// A backup brings back a record without its owner, which the Cluster becomes again.
	orphan := r.record(t, "c4-d")
	if !r.owns(t, orphan) {
		t.Errorf("the record is owned by %v", orphan.OwnerReferences)
	}
	if err := r.Patch(t.Context(), orphan, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
		t.Fatal(err)
	}
	both = []*gateway{r.run(), r.run()}
	eventually(t, "the Cluster owns the record again", func() (string, bool) {
		o := r.record(t, "c4-d")
		return fmt.Sprint(o.OwnerReferences), r.owns(t, o)
	})
	r.now(t, "seven", both, "c0-d", "c4-d")
	r.now(t, "six", both, "c8-d", "c12-d", "c16-d")

	// A candidate that is down fails for Clusters that have moved, and no others notice.
	r.seven.set(func(s *serverOf) { s.broken = true })
	for _, g := range both {
		if got := r.ask(t, g, "c0-d"); !strings.Contains(got, "Failure") {
			t.Errorf("without the candidate, c0-d has %s", got)
		}
	}
	r.now(t, "six", both, "c8-d")
	r.seven.set(func(s *serverOf) { s.broken = false })

	// To delete the record is to move back.
	r.back["c0-d"] = true
	if err := r.Delete(t.Context(), r.record(t, "c0-d")); err != nil {
		t.Fatal(err)
	}
	r.all(t, "c0-d", "six", both...)
	r.all(t, "c4-d", "seven", both...) // once the circuit has closed

	// A new Cluster begins with the candidate, and one of the name of a Cluster that has moved is another one.
	r.cluster(t, "new-d", "{}")
	r.now(t, "seven", both[:1], "new-d")
	r.all(t, "new-d", "seven", both...)
	r.back["c4-d"] = true
	if err := r.Delete(t.Context(), object(t, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {namespace: default, name: c4-d}\n")); err != nil {
		t.Fatal(err)
	}
	r.cluster(t, "c4-d", "{infrastructureRef: {name: a}}")
	r.all(t, "c4-d", "six", both...)
	r.expectEvents(t, "Different: acme-v7 answers differently for Cluster default/c8-d",
		"Moved: Cluster default/new-d has moved to acme-v7: the Cluster was new")
}

// awaitReady waits until the ExtensionRollout is ready with a message.
func (r *rolloutOf) awaitReady(t *testing.T, message string) {
	t.Helper()
	eventually(t, "the rollout is ready", func() (string, bool) {
		o := &v1alpha1.ExtensionRollout{}
		if err := r.Get(context.Background(), client.ObjectKeyFromObject(r.rollout), o); err != nil {
			t.Fatal(err)
		}
		found := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ReadyCondition)
		return fmt.Sprint(found), found != nil && found.Message == message
	})
}

// expectEvents waits for events of the ExtensionRollout, each as reason and note.
func (r *rolloutOf) expectEvents(t *testing.T, want ...string) {
	t.Helper()
	eventually(t, "events", func() (string, bool) {
		var list eventsv1.EventList
		if err := r.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range list.Items {
			if e.Regarding.UID == r.rollout.UID {
				all = append(all, e.Reason+": "+e.Note)
			}
		}
		missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(all, w) })
		return strings.Join(all, "\n"), len(missing) == 0
	})
}
