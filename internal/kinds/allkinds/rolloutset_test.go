// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds_test

import (
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// A rollout that is aborted stays in effect for the Clusters that have moved, and its condition says why no more do.
func TestRolloutVerdicts(t *testing.T) {
	r := registry.New()
	engine := rollout.New(rollout.Config{Logger: slog.New(slog.DiscardHandler)})
	s := rollout.NewSet(r, engine, nil, slog.New(slog.DiscardHandler))
	compiled, errs := engine.Compile(&v1alpha1.ExtensionRollout{
		ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.ExtensionRolloutSpec{Stable: "v6", Candidate: "v7"},
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	s.Use(items([]registry.Rollout{compiled}, map[string]string{"wrong": "spec.stable: required"}))
	want := func(reason, message string, ready bool) {
		t.Helper()
		if got := s.Verdicts()["acme"]; got.Reason != reason || got.Message != message || got.Ready() != ready {
			t.Errorf("got %+v, want %s: %s", got, reason, message)
		}
	}
	want(v1alpha1.MemberMissingReason, `Calls fail: the handlers of the stable ExtensionConfig "v6" are not known`, false)
	for _, name := range []string{"v6", "v7"} {
		if err := r.Apply(registry.Registration{Name: name, ClientConfig: registry.ClientConfig{URL: "https://" + name}}); err != nil {
			t.Fatal(err)
		}
	}
	want(v1alpha1.RecordsMissingReason, "Calls fail with NotReady: it is not known which Clusters have moved, because "+
		"not all ExtensionRolloutRecords have been read; the log names the one that cannot be read", false)
	engine.SetRead()
	want(v1alpha1.ReadyReason, "v6 answers calls; calls for Clusters that have moved go to v7", true)
	record := &v1alpha1.ExtensionRolloutRecord{Spec: v1alpha1.ExtensionRolloutRecordSpec{
		Rollout: "acme", Candidate: "v7", State: v1alpha1.RolloutStateAborted, Message: "too many calls have failed",
	}}
	engine.Set(record)
	want(v1alpha1.AbortedReason,
		"v6 answers calls; calls for Clusters that have moved go to v7; no more Clusters move: too many calls have failed", true)
	engine.Remove(record)
	want(v1alpha1.ReadyReason, "v6 answers calls; calls for Clusters that have moved go to v7", true)
	if got := s.Verdicts()["wrong"]; got.Reason != v1alpha1.InvalidReason {
		t.Errorf("wrong: %+v", got)
	}
}
