// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// newReportedRollout returns a gateway with the rollout acme, whose stable member has its name, and its Reporter. 30
// Clusters differ.
func newReportedRollout(t *testing.T, a *assigned) (*Dispatcher, *observe.Reporter, observed) {
	t.Helper()
	of := handlerOf("patch", "GeneratePatches", hook.Fail)
	r := filled(t, registrationOf("acme", of), registrationOf("v7", of))
	r.SetRollouts([]registry.Rollout{{Name: "acme", Stable: "acme", Candidate: "v7", Assignment: a}})
	o := newObserved(r)
	d := newObservedDispatcher(o, r, callerFunc(func(_ context.Context, c extension.Call) (proto.Message, error) {
		if c.Handler.Registration.Name == "v7" {
			return nil, hook.Errorf(hook.Unreachable, "refused")
		}
		return &hooksv1alpha1.GeneratePatchesResponse{Status: success}, nil
	}))
	reporter := &observe.Reporter{
		Catalog: allHooks, Registry: r, Observer: o.Observer, Namespaces: fixedNamespaces{},
		Objects: func(g *status.Gateway) {
			shown := status.Rollout{
				Name: "acme", Stable: "acme", Candidate: "v7", Ready: true, Reason: "Ready", Equal: 5, Different: 30, Failing: 2,
				Aborted: "too many calls have failed",
			}
			for i := range shown.Different {
				shown.Clusters = append(shown.Clusters, status.RolloutCluster{
					Namespace: "ns", Cluster: strconv.Itoa(i), State: "Different", Differences: make([]status.RolloutDifference, 3),
				})
			}
			g.Rollouts = []status.Rollout{shown}
		},
	}
	o.metrics.Report(reporter)
	for _, cluster := range append([]string{"stays"}, a.candidates...) {
		_, _ = d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), "patch.acme", templateOf(cluster)) // the candidate fails
	}
	return d, reporter, o
}

// A candidate that has not been called leaves the state of the handler to the stable member. A comparison that fails
// holds no Cluster, because no caller gets its answer.
func TestComparisonHoldsNoCluster(t *testing.T) {
	a := &assigned{}
	_, r, _ := newReportedRollout(t, a)
	if h := r.Gateway().Rollouts[0].Handlers[0]; h.State != status.Up || h.Calls.Total != 1 {
		t.Errorf("before a comparison: %+v, want Up", h)
	}
	for _, ask := range a.asked {
		if c := ask(t.Context()); c.Err == nil {
			t.Errorf("compared: %+v", c)
		}
	}
	g := r.Gateway()
	if h := g.Rollouts[0].Handlers[0]; len(a.asked) != 1 || h.Calls.Failures != 1 || len(g.Holds) > 0 {
		t.Errorf("after %d comparisons: %+v, holds %+v", len(a.asked), h, g.Holds)
	}
}

// The status has the handlers of a rollout with the calls of both members, says at these what they are to it, and
// shortens what is known of its Clusters unless the rollout is asked for.
func TestStatusOfRollouts(t *testing.T) {
	_, r, _ := newReportedRollout(t, &assigned{candidates: []string{"moved", "moved"}})
	g := r.Gateway()
	of := g.Rollouts[0]
	if h := of.Handlers[0]; len(of.Handlers) != 1 || h.Name != "patch.acme" || h.Kind != "ExtensionRollout" ||
		h.OfferedAs != "patch--acme" || h.Calls.Total != 3 || h.Calls.Failures != 2 || h.State != status.Failing {
		t.Errorf("handlers of the rollout: %+v", of.Handlers)
	}
	if len(of.Clusters) != limits.StatusRolloutExamples || of.MissedClusters != 10 || len(of.Clusters[0].Differences) != 1 ||
		of.Clusters[0].OmittedDifferences != 2 {
		t.Errorf("%d Clusters, %d missed, the first %+v", len(of.Clusters), of.MissedClusters, of.Clusters[0])
	}
	as := map[string]string{}
	for _, x := range g.Extensions {
		as[x.Name] = x.Rollout.Name + " " + x.Rollout.As + " " + x.Handlers[0].OfferedAs
	}
	if diff := cmp.Diff(map[string]string{"acme": "acme stable patch--acme", "v7": "acme candidate patch--acme"}, as); diff != "" {
		t.Errorf("members: -want +got\n%s", diff)
	}
	if g, ok := r.Object("rollout", "acme"); !ok || len(g.Rollouts) != 1 || len(g.Rollouts[0].Clusters) != 30 || len(g.Rollouts[0].Clusters[0].Differences) != 3 {
		t.Errorf("the rollout alone: %t, %+v", ok, g.Rollouts)
	}
	if _, ok := r.Object("rollout", "none"); ok {
		t.Error("there is a rollout none")
	}
}

// A Cluster that waits for a member is held by the rollout's extension, and counted.
func TestMetricsOfRollouts(t *testing.T) {
	d, r, o := newReportedRollout(t, &assigned{candidates: []string{"moved", "moved"}})
	wantCount(t, o.series, "hookgate_rollout_clusters", 30, "acme", "different")
	wantCount(t, o.series, "hookgate_rollout_clusters", 2, "acme", "failing")
	wantCount(t, o.series, "hookgate_rollout_ready", 1, "acme")
	wantCount(t, o.series, "hookgate_rollout_aborted", 1, "acme")
	o.metrics.Compared("acme", rollout.ResultFailed)
	wantCount(t, o.series, "hookgate_rollout_comparisons_total", 1, "acme", rollout.ResultFailed)
	const name = "hookgate_rollout_comparisons_total"
	if n, err := testutil.GatherAndCount(o.series, name); err != nil || n != len(rollout.Results()) {
		t.Errorf("%d series of comparisons, %v", n, err)
	}
	for i := range 2 * limits.StatusRollouts {
		o.metrics.Compared(fmt.Sprint("gone-", i), rollout.ResultEqual)
	}
	reg, _ := d.config.Registry.(*registry.Registry)
	reg.SetRollouts(nil)
	r.Objects = nil
	if _, err := o.series.Gather(); err != nil { // which removes what is gone
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(o.series, name, "hookgate_rollout_clusters"); err != nil || n != 0 {
		t.Errorf("%d series of a rollout that is gone, %v", n, err)
	}
}
