// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/owner"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// Times of the API server are in seconds, in which a Cluster may be deleted, made again, and get its first record. That
// record is not one of the Cluster before it, whose deletion a replica may hear of late.
func TestRecordOfTheNextClusterStays(t *testing.T) {
	second := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	now := metadataOf(owner.ClusterKind)
	now.Namespace, now.Name, now.UID, now.CreationTimestamp = "team", "c1", "new", second
	before := now.DeepCopy()
	before.UID = "old"

	deletions := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodDelete {
			deletions <- path.Base(r.URL.Path)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
			})
			return
		}
		list := metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*now}}
		list.APIVersion, list.Kind = "cluster.x-k8s.io/v1beta2", "ClusterList"
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	c, err := client.New(&rest.Config{Host: server.URL},
		client.Options{Scheme: newScheme(HookgateGroup), Mapper: newMapper(HookgateGroup)})
	if err != nil {
		t.Fatal(err)
	}
	of := types.NamespacedName{Namespace: "team", Name: "c1"}
	for name, tc := range map[string]struct {
		owner *metav1.PartialObjectMetadata
		want  []string
		moved int // as the engine knows it then
	}{
		"of the Cluster that is there":  {now, nil, 1},
		"of the Cluster that was there": {before, []string{"record"}, 0},
	} {
		r := &rollouts{
			engine: rollout.New(rollout.Config{Logger: slog.New(slog.DiscardHandler)}), live: c, client: c,
			logger: slog.New(slog.DiscardHandler),
		}
		record := &v1alpha1.ExtensionRolloutRecord{}
		record.Namespace, record.Name, record.UID, record.CreationTimestamp = "team", "record", "r", second
		record.Spec.Rollout, record.Spec.Candidate = "x", "x-2"
		record.Spec.State = v1alpha1.RolloutStateMoved
		record.Spec.Cluster = &v1alpha1.RolloutCluster{Namespace: "team", Name: "c1"}
		owner.SetCluster(record, tc.owner)
		if tc.owner == before {
			r.engine.Set(record)
			r.engine.Gone(of) // as forget does
		} else {
			r.engine.Gone(of)
			r.engine.Set(record)
		}
		err := r.deleteRecords(t.Context(), goneCluster{of, "old"})
		var deleted []string
		for len(deletions) > 0 {
			deleted = append(deleted, <-deletions)
		}
		if err != nil || !slices.Equal(deleted, tc.want) {
			t.Errorf("%s: deleted %v, %v, want %v", name, deleted, err, tc.want)
		}
		if moved := r.engine.Moved("x")["x-2"]; moved != tc.moved {
			t.Errorf("%s: %d Clusters have moved, want %d", name, moved, tc.moved)
		}
	}
}
