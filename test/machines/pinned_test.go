// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/registry"
)

// TestPinnedWorkers upgrades a pinned worker as Cluster API v1.15 does, whose types these controllers do not have: its
// Machine is held by the rule of the example, which reads the version from the Cluster.
func TestPinnedWorkers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	var now atomic.Pointer[time.Time]
	set := func(day int) { at := time.Date(2026, time.January, day, 1, 0, 0, 0, time.UTC); now.Store(&at) }
	set(9)
	w.rule(func() time.Time { return *now.Load() })
	c := &clusterv1.Cluster{}
	c.Namespace, c.Name = w.namespace, "c"
	const pinned = `{"spec": {"topology": {"workers": {"machineDeployments": [{"name": "md", "version": "v1.36.0"}]}}}}`
	if err := w.client.Patch(t.Context(), c, client.RawPatch(types.MergePatchType, []byte(pinned))); err != nil {
		t.Fatal(err)
	}
	for name, worker := range map[string]string{"pinned": "md", "managed": "other"} {
		m := &clusterv1.Machine{}
		m.Name, m.Spec.ClusterName, m.Spec.Version = name, "c", "v1.35.0"
		m.Labels = map[string]string{clusterv1.ClusterTopologyMachineDeploymentNameLabel: worker}
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		w.create(m)
	}
	w.start()
	w.has("pinned", "drain")
	w.has("managed")

	w.delete("pinned")
	w.waits("pinned", clusterv1.MachineDeletingWaitingForPreDrainHookReason)
	w.held("pinned", "BeforeMachineDrain: rule.pinned-workers: pinned workers are upgraded on Saturday night")
	set(10)
	if err := w.client.Patch(t.Context(), w.get("pinned"), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"asked": "again"}}}`))); err != nil {
		t.Fatal(err)
	}
	w.has("pinned")
}

// rule registers the rule of the example for Machines.
func (w *fixture) rule(now func() time.Time) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "examples", "rules", "pinned-workers", "rule.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n---\n")
	rule := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict([]byte(first), rule); err != nil {
		w.t.Fatal(err)
	}
	hooks, _, err := gateway.Hooks(gateway.Infrastructure(), gateway.Machines())
	if err != nil {
		w.t.Fatal(err)
	}
	cel, err := policy.NewCompiler()
	if err != nil {
		w.t.Fatal(err)
	}
	known, err := policy.NewTypes(hooks)
	if err != nil {
		w.t.Fatal(err)
	}
	reg, errs := hookrule.NewCompiler(hooks, cel, known, now).Compile(rule)
	if len(errs) > 0 {
		w.t.Fatal(errs)
	}
	for _, err := range w.registry.SetLocal(hookrule.Kind, []registry.Registration{reg}) {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}
