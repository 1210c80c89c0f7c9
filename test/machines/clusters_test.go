// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/machines"
	"github.com/hookgate/hookgate/sdk"
)

// clusters is a fixture whose controllers are those of Clusters, with the rights of a hub and no others.
type clusters struct {
	*fixture
	gateway string // its namespace
}

func newClusters(t *testing.T) *clusters {
	t.Helper()
	w := &clusters{fixture: newFixture(t)}
	w.gateway = w.namespace + "-gateway"
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.gateway}})
	kubectl := exec.CommandContext(t.Context(), filepath.Join(sharedServer(t).BinaryAssetsDirectory, "kubectl"),
		"--kubeconfig", operator(t), "apply", "-f", filepath.Join("..", "..", "deploy", "components", "cluster", "rbac.yaml"))
	if out, err := kubectl.CombinedOutput(); err != nil && !strings.Contains(string(out), `namespaces "hookgate-system" not found`) {
		t.Fatalf("%v: %s", err, out)
	}
	w.new = func(c *machines.Config) {
		c.Clusters, c.LeaderElection = true, machines.LeaderElection{Namespace: w.gateway}
		c.REST = rest.CopyConfig(c.REST)
		c.REST.Impersonate.UserName = "system:serviceaccount:hookgate-system:hookgate"
	}
	w.register("AfterClusterDelete")
	return w
}

// live creates a Cluster, and waits until it is remembered.
func (w *clusters) live(name string) *clusterv1.Cluster {
	w.t.Helper()
	c := &clusterv1.Cluster{}
	c.Name, c.Labels = name, map[string]string{"tier": "held"}
	c.Annotations = map[string]string{"secret": "kept nowhere"}
	c.Spec.Topology.ClassRef.Name, c.Spec.Topology.Version = "quick-start", "v1.34.0"
	c.Spec.Topology.Variables = []clusterv1.ClusterVariable{{Name: "password"}}
	w.create(c)
	w.eventually("Cluster "+name+" is remembered", func() (string, bool) {
		r := w.record(c)
		return "", r != nil && r.Spec.AfterDelete.MayMove == nil
	})
	return c
}

// record returns what is remembered of a Cluster, or nil.
func (w *clusters) record(c client.Object) *v1alpha1.ClusterRecord {
	w.t.Helper()
	return w.read(w.gateway, "after-delete."+string(c.GetUID()))
}

func (w *clusters) read(namespace, name string) *v1alpha1.ClusterRecord {
	w.t.Helper()
	r := &v1alpha1.ClusterRecord{}
	err := w.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, r)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// blocks reports whether clusterctl waits with the move of a Cluster.
func (w *clusters) blocks(c client.Object) bool {
	w.t.Helper()
	r := w.read(c.GetNamespace(), "before-move."+c.GetName())
	if r == nil {
		return false
	}
	_, is := r.Annotations[machines.BlockMoveAnnotation]
	return is
}

func (w *clusters) end(c client.Object) {
	w.t.Helper()
	if err := w.client.Delete(context.Background(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *clusters) patch(c client.Object, kind types.PatchType, patch string) {
	w.t.Helper()
	if err := w.client.Patch(context.Background(), c, client.RawPatch(kind, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// told returns the UIDs of the Clusters that the handler was told about, in order.
func (w *clusters) told() []string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []string{}
	for _, in := range w.deleted {
		c := &clusterv1.Cluster{}
		if err := json.Unmarshal(in.GetCluster().GetRaw(), c); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, string(c.UID))
	}
	return all
}

// forgotten waits until nothing is remembered of a Cluster.
func (w *clusters) forgotten(c client.Object) {
	w.t.Helper()
	w.eventually("nothing is remembered of Cluster "+c.GetName(), func() (string, bool) { return "", w.record(c) == nil })
}

func TestAfterClusterDelete(t *testing.T) {
	t.Parallel()
	w := newClusters(t)
	failures := 2
	w.says("AfterClusterDelete", func() (sdk.Answer, error) {
		if failures--; failures >= 0 {
			return nil, sdk.Failf("the DNS cannot be reached")
		}
		return sdk.Done(), nil
	})
	w.start()
	other := &clusterv1.Cluster{} // no handler matches it
	other.Name = "other"
	w.create(other)
	c := w.live("c1")
	kept := w.record(c).Spec
	kept.AfterDelete.Created = metav1.Time{}
	if diff := cmp.Diff(v1alpha1.ClusterRecordSpec{ClusterName: "c1", AfterDelete: &v1alpha1.ClusterAfterDelete{
		UID: string(c.UID), Namespace: w.namespace, Class: "quick-start", Version: "v1.34.0",
		Labels: map[string]string{"tier": "held"}, NamespaceLabels: map[string]string{corev1.LabelMetadataName: w.namespace},
	}}, kept); diff != "" {
		t.Errorf("what is kept of a Cluster (-want +got):\n%s", diff)
	}
	if w.record(other) != nil || len(c.Finalizers) > 0 {
		t.Error("a Cluster without a handler is remembered, or one has a finalizer")
	}

	w.end(other)
	w.end(c)
	w.forgotten(c)
	if diff := cmp.Diff(slices.Repeat([]string{string(c.UID)}, 3), w.told()); diff != "" {
		t.Errorf("two Failures and a Success (-want +got):\n%s", diff)
	}
	w.eventually("the event of a Failure", func() (string, bool) {
		list := &eventsv1.EventList{}
		if err := w.client.List(t.Context(), list, client.InNamespace(w.gateway)); err != nil {
			return err.Error(), false
		}
		return "", slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Kind == "ClusterRecord" && strings.Contains(e.Note, "the DNS cannot be reached")
		})
	})
}

// A Cluster is deleted while there is no gateway, its name is used again, and its namespace, whose labels select the
// handler, is gone.
func TestAfterClusterDeleteWithoutGateway(t *testing.T) {
	t.Parallel()
	w := newClusters(t)
	namespace := &corev1.Namespace{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: w.namespace}, namespace); err != nil {
		t.Fatal(err)
	}
	w.patch(namespace, types.MergePatchType, `{"metadata": {"labels": {"tenant": "acme"}}}`)
	w.mu.Lock()
	w.selector = labels.SelectorFromSet(labels.Set{"tenant": "acme"})
	w.namespaces = known{w.namespace: {"tenant": "acme"}}
	w.mu.Unlock()
	w.register("AfterClusterDelete")
	w.start()
	first := w.live("c1")
	w.stop()
	w.end(first)
	second := &clusterv1.Cluster{}
	second.Name, second.Labels = "c1", first.Labels
	w.create(second)
	w.start()
	w.forgotten(first)
	w.eventually("the second Cluster is remembered", func() (string, bool) { return "", w.record(second) != nil })
	if diff := cmp.Diff([]string{string(first.UID)}, w.told()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}

	w.stop()
	w.end(second)
	w.end(namespace)
	// There is no controller of namespaces: the test removes what it would.
	guard := w.read(w.namespace, "before-move.c1")
	w.end(guard)
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
		t.Fatal(err)
	}
	namespace.Spec.Finalizers = nil
	if err := w.client.SubResource("finalize").Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.namespaces = known{}
	w.mu.Unlock()
	w.start()
	w.forgotten(second)
	if diff := cmp.Diff([]string{string(first.UID), string(second.UID)}, w.told()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// known are the labels of all namespaces that are known.
type known map[string]map[string]string

// NamespaceLabels implements gateway.Namespaces.
func (k known) NamespaceLabels(name string) (map[string]string, bool) {
	of, ok := k[name]
	return of, ok
}

// TestMovedClusterIsNotGone takes the steps of clusterctl move, in its order: it pauses the Cluster, waits until nothing
// blocks the move, replaces the annotations, and deletes. The gateway may be away from when it lets the Cluster go; if
// it is away before, clusterctl waits. A Cluster whose move was given up is gone when it is deleted.
func TestMovedClusterIsNotGone(t *testing.T) {
	t.Parallel()
	const (
		pause   = `{"spec": {"paused": true}}`
		forMove = `[{"op": "add", "path": "/metadata/annotations", "value": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}}]`
	)
	w := newClusters(t)
	w.start()
	watched, unwatched, stays := w.live("watched"), w.live("unwatched"), w.live("stays")
	w.stop()
	for _, c := range []*clusterv1.Cluster{watched, unwatched, stays} {
		w.patch(c, types.MergePatchType, pause)
		if !w.blocks(c) {
			t.Fatalf("clusterctl may move Cluster %s while there is no gateway", c.Name)
		}
	}
	w.start()
	for _, c := range []*clusterv1.Cluster{watched, unwatched, stays} {
		w.eventually("clusterctl may move Cluster "+c.Name, func() (string, bool) { return "", !w.blocks(c) })
	}
	w.patch(watched, types.JSONPatchType, forMove)
	w.end(watched)
	w.forgotten(watched)

	w.stop()
	w.patch(unwatched, types.JSONPatchType, forMove)
	w.end(unwatched)
	w.start()
	w.forgotten(unwatched)
	if told := w.told(); len(told) > 0 {
		t.Errorf("a Cluster that was moved counts as gone: %v", told)
	}

	w.patch(stays, types.MergePatchType, `{"spec": {"paused": false}}`)
	w.eventually("clusterctl waits again", func() (string, bool) {
		r := w.record(stays)
		return "", w.blocks(stays) && r != nil && r.Spec.AfterDelete.MayMove == nil
	})
	w.end(stays)
	w.forgotten(stays)
	if diff := cmp.Diff([]string{string(stays.UID)}, w.told()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestRecordFromBackup restores the record of a Cluster that had another UID, as docs/backup.md does: its Cluster may
// live on.
func TestRecordFromBackup(t *testing.T) {
	t.Parallel()
	w := newClusters(t)
	r := &v1alpha1.ClusterRecord{}
	r.Namespace, r.Name, r.Labels = w.gateway, "after-delete.before", map[string]string{machines.AfterDeleteLabel: ""}
	r.Spec = v1alpha1.ClusterRecordSpec{ClusterName: "c", AfterDelete: &v1alpha1.ClusterAfterDelete{
		UID: "before", Namespace: w.namespace, Labels: map[string]string{"tier": "held"},
	}}
	gone := r.DeepCopy()
	gone.Name, gone.Spec.AfterDelete.UID = "after-delete.gone", "gone"
	gone.Spec.AfterDelete.GoneSince = metav1.NewTime(time.Now().Truncate(time.Second))
	for _, o := range []*v1alpha1.ClusterRecord{r, gone} {
		if err := w.client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.eventually("both are forgotten", func() (string, bool) {
		return "", w.read(w.gateway, r.Name) == nil && w.read(w.gateway, gone.Name) == nil
	})
	if diff := cmp.Diff([]string{"gone"}, w.told()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
