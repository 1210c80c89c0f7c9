// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

var (
	clusterRecords = schema.GroupVersionKind{Group: "hookgate.dev", Version: "v1alpha1", Kind: "ClusterRecord"}
	rolloutRecords = schema.GroupVersionKind{Group: "hookgate.dev", Version: "v1alpha1", Kind: "ExtensionRolloutRecord"}
	remediations   = schema.GroupVersionKind{Group: "machines.hookgate.dev", Version: "v1alpha1", Kind: "HookgateRemediation"}
	machines       = schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Machine"}
)

// gives runs a gateway on a management cluster until the end of the test, and returns what asks it whether the upgrade of
// a Cluster may begin.
func (s *server) gives(t *testing.T, rule string) (mayUpgrade func(namespace, name string) bool) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 1000, 1000
	reg := registry.New()
	source, err := controllers.New(controllers.Config{
		Catalog: catalog.New(), REST: config, Registry: reg, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the gateway ended: %v", err)
		}
	})
	registered := func() (*registry.Registration, bool) { return reg.Snapshot().Registration(rule) }
	until(t, "the rule is in effect", func() bool {
		_, ok := registered()
		return ok && reg.Snapshot().Ready()
	})
	return func(namespace, name string) bool {
		t.Helper()
		raw, err := s.find(t, clusters, namespace, name).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		of, _ := registered()
		got, err := of.InProcess.Answer(t.Context(), &hooksv1alpha1.BeforeClusterUpgradeRequest{
			Cluster: &hooksv1alpha1.RawExtension{Raw: raw},
		}, policy.Guard{})
		if err != nil {
			t.Fatal(err)
		}
		return got.(*hooksv1alpha1.BeforeClusterUpgradeResponse).GetRetryAfterSeconds() == 0
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(process.Patience); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// ready makes a Cluster that clusterctl may move.
func (s *server) ready(t *testing.T, namespace, name string) {
	t.Helper()
	s.apply(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	s.apply(t, map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": name, "namespace": namespace},
		"spec": map[string]any{"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AnyCluster", "name": name}},
	})
	s.kubectl(t, "", "-n", namespace, "patch", "clusters.cluster.x-k8s.io", name, "--subresource=status", "--type=merge", "-p", `{"status": {
		"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true},
		"conditions": [{"type": "ControlPlaneInitialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`)
}

// owned returns an object that another one owns.
func owned(kind schema.GroupVersionKind, name string, owner *unstructured.Unstructured, spec map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": owner.GetNamespace(), "ownerReferences": []any{map[string]any{
			"apiVersion": owner.GetAPIVersion(), "kind": owner.GetKind(), "name": owner.GetName(), "uid": string(owner.GetUID()),
		}}},
	}
}

// testMoveRecords moves a live Cluster that has the one place of a rule, has moved in a rollout, and has a Machine that is
// remediated, while a Job runs for it. Gateways run on both management clusters. The move waits for the Job; the Cluster
// has its place in the other management cluster, and no other gets it there, whereas it is free in the first.
func testMoveRecords(t *testing.T, r *repository, from, to *server) {
	const rule, block = "one-at-a-time", "clusterctl.cluster.x-k8s.io/block-move"
	for _, s := range []*server{from, to} {
		s.kubectl(t, "", "apply", "--server-side", "-k", filepath.Join("..", "..", "deploy", "crd", "machines"))
		s.apply(t, map[string]any{
			"apiVersion": "hookgate.dev/v1alpha1", "kind": "HookRule", "metadata": map[string]any{"name": rule},
			"spec": map[string]any{"hook": "BeforeClusterUpgrade", "concurrency": map[string]any{"limit": 1}},
		})
		s.ready(t, "stay", "waits")
	}
	from.ready(t, "live", "c")
	cluster := from.find(t, clusters, "live", "c")
	fromMay, toMay := from.gives(t, rule), to.gives(t, rule)
	if !fromMay("live", "c") || fromMay("stay", "waits") {
		t.Fatal("the first Cluster has not the place, or the second one has it, too")
	}
	from.apply(t, owned(rolloutRecords, "acme.1", cluster, map[string]any{
		"rollout": "acme", "candidate": "acme-v7", "state": "Moved", "cluster": map[string]any{"namespace": "live", "name": "c"},
	}))
	from.apply(t, owned(machines, "m", cluster, map[string]any{
		"clusterName": "c", "bootstrap": map[string]any{"dataSecretName": "m"},
		"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AnyMachine", "name": "m"},
	}))
	from.kubectl(t, "", "-n", "live", "patch", "machines.cluster.x-k8s.io", "m", "--subresource=status", "--type=merge", "-p", `{"status": {"nodeRef": {"name": "n"}}}`)
	from.apply(t, owned(remediations, "m", from.find(t, machines, "live", "m"), map[string]any{
		"handler": "job.reboot", "retryLimit": 2,
		"progress": map[string]any{"id": "an-id", "phase": "Remediating", "attempt": 2, "attemptStartTime": "2026-01-01T00:00:00Z"},
	}))
	job := owned(clusterRecords, "job.reboot.c", cluster, map[string]any{
		"clusterName": "c", "job": map[string]any{"hookJob": "reboot", "succeeded": []any{"0123456789abcdef"}},
	})
	job["metadata"].(map[string]any)["annotations"] = map[string]any{block: "jobs/reboot/uid"}
	from.apply(t, job)
	records := map[schema.GroupVersionKind][]string{
		clusterRecords: {"rule." + rule + ".c", "job.reboot.c"}, rolloutRecords: {"acme.1"}, remediations: {"m"},
	}
	specs := func(s *server) map[string]any {
		all := map[string]any{}
		for kind, names := range records {
			for _, name := range names {
				if o := s.find(t, kind, "live", name); o != nil {
					all[kind.Kind+" "+name] = o.Object["spec"]
				}
			}
		}
		return all
	}
	before := specs(from)

	said := &process.Log{}
	move := r.command(t, []string{"KUBECONFIG=" + from.kubeconfig}, "move", "--namespace", "live", "--to-kubeconfig", to.kubeconfig)
	move.Stderr = said
	if err := move.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "clusterctl waits for the Job", func() bool { return strings.Contains(said.String(), "Move blocked by "+block) })
	if to.find(t, clusters, "live", "c") != nil {
		t.Error("the Cluster was moved while a Job runs")
	}
	from.kubectl(t, "", "-n", "live", "annotate", "clusterrecords.hookgate.dev", "job.reboot.c", block+"-")
	if err := move.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}

	if diff := cmp.Diff(before, specs(to)); diff != "" || len(before) != 4 {
		t.Errorf("after the move (-from +to):\n%s", diff)
	}
	if left := specs(from); len(left) > 0 {
		t.Errorf("in the first management cluster there are %v", left)
	}
	for kind, owner := range map[schema.GroupVersionKind]*unstructured.Unstructured{
		clusterRecords: to.find(t, clusters, "live", "c"), rolloutRecords: to.find(t, clusters, "live", "c"),
		remediations: to.find(t, machines, "live", "m"),
	} {
		for _, name := range records[kind] {
			if refs := to.find(t, kind, "live", name).GetOwnerReferences(); len(refs) != 1 || refs[0].UID != owner.GetUID() {
				t.Errorf("%s %s is owned by %v", kind.Kind, name, refs)
			}
		}
	}
	until(t, "the place is free in the first management cluster", func() bool { return fromMay("stay", "waits") })
	if !toMay("live", "c") || toMay("stay", "waits") {
		t.Error("in the other management cluster, the Cluster has not its place, or another one has it, too")
	}
	for _, s := range []*server{from, to} { // what is left would be in the way of the next steps
		for _, kind := range []string{
			"hookrules.hookgate.dev", "clusterrecords.hookgate.dev", "extensionrolloutrecords.hookgate.dev",
			"hookgateremediations.machines.hookgate.dev",
		} {
			s.kubectl(t, "", "delete", kind, "--all", "--all-namespaces")
		}
	}
}
