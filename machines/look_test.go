// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package machines

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// cached reads one Machine and one Cluster under every name, and writes nothing.
type cached struct {
	client.Client
	machine *clusterv1.Machine
	cluster *unstructured.Unstructured
}

// Get implements client.Reader.
func (c cached) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch o := o.(type) {
	case *clusterv1.Machine:
		c.machine.DeepCopyInto(o)
	case *unstructured.Unstructured:
		c.cluster.DeepCopyInto(o)
	default:
		return fmt.Errorf("no %T", o)
	}
	return nil
}

type anyNamespace struct{}

func (anyNamespace) NamespaceLabels(string) (map[string]string, bool) { return nil, true }

// BenchmarkLook looks at a Machine as a change of the registry makes the controllers do for every one: three hooks have
// handlers, which match another one.
func BenchmarkLook(b *testing.B) {
	hooks, versions, err := gateway.Hooks(gateway.Machines())
	if err != nil {
		b.Fatal(err)
	}
	reg := registry.New(hooks.Merged()...)
	reg.SetPolicies("acme", registry.Policies{All: &policy.Policy{
		Name: "acme", ObjectSelector: labels.SelectorFromSet(labels.Set{"tier": "held"}),
	}})
	of := registry.Registration{Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://acme.example"}}
	for _, name := range []string{"AfterMachineProvisioned", "BeforeMachineDrain", "BeforeMachineTerminate"} {
		of.Handlers = append(of.Handlers, registry.Handler{
			Name: fmt.Sprintf("h%d", len(of.Handlers)), Timeout: time.Second, FailurePolicy: hook.Fail,
			Hook: hook.GroupVersionHook{Group: hook.MachinesGroup, Version: hook.MachinesVersion, Hook: name},
		})
	}
	if err := reg.Apply(of); err != nil {
		b.Fatal(err)
	}
	reg.SetReady()
	logger := slog.New(slog.DiscardHandler)
	d := gateway.NewDispatcher(gateway.Config{
		Catalog: hooks, Versions: versions, Registry: reg, Namespaces: anyNamespace{},
		Parts: shared.Parts{
			Codec: codec.New(hooks),
			Observer: observe.NewObserver(observe.NewMetrics(prometheus.NewRegistry(), reg, hooks, "test"),
				noop.NewTracerProvider(), logger, convert.NewLosses(nil)),
		},
	})
	m, err := newMetrics(prometheus.NewRegistry(), documented)
	if err != nil {
		b.Fatal(err)
	}
	machine, cluster := &clusterv1.Machine{}, anyCluster()
	machine.Name, machine.Namespace, machine.Labels = "m", "a", map[string]string{"tier": "free"}
	machine.Spec.ClusterName, machine.Spec.Version = "c", "v1.36.0"
	machine.Status.Initialization.InfrastructureProvisioned = new(true)
	cluster.SetName("c")
	cluster.SetNamespace("a")
	r, err := (&base{
		client: cached{machine: machine, cluster: cluster}, metrics: m, now: time.Now,
		config: &Config{Catalog: hooks, Hooks: gateway.NewInProcess(d, "test"), Registry: reg, Logger: logger},
	}).newLifecycle()
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := r.Reconcile(b.Context(), reconcile.Request{}); err != nil {
			b.Fatal(err)
		}
	}
}
