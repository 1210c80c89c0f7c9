// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scaleMachines is the number of machines of each Cluster of TestScaleInMemory, of which there are -clusters.
var scaleMachines = flag.Int("machines", 0, "`number` of machines of each Cluster of TestScaleInMemory; 0 skips it")

// TestScaleInMemory measures Cluster API's own provider, whose machines are in its memory and start at once, as
// BenchmarkScale of test/provider measures Hookgate's: without the other controllers, whose part the test does. Both are
// for comparison, and `make bench-scale` runs one after the other.
func TestScaleInMemory(t *testing.T) {
	if *scaleMachines == 0 {
		t.Skip("`make bench-scale` says how many machines")
	}
	w := begin(t, true)
	var provider *server
	for _, s := range w.managers {
		if s.name == "infrastructure" {
			provider = s
		}
	}
	// The other providers would do what the test does. What they would have to admit is not asked for.
	for _, s := range w.managers {
		if s != provider {
			w.retire(s.process)
		}
	}
	if err := w.DeleteAllOf(w.ctx, &admissionv1.ValidatingWebhookConfiguration{}); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteAllOf(w.ctx, &admissionv1.MutatingWebhookConfiguration{}); err != nil {
		t.Fatal(err)
	}
	const requests = "rest_client_requests_total"
	before, began := provider.scrape(t, requests), time.Now()
	group, ctx := errgroup.WithContext(w.ctx)
	for i := range *fleetSize {
		group.Go(func() error { return w.createInMemory(ctx, fmt.Sprintf("c%03d", i), *scaleMachines) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	created, machines := time.Now(), *fleetSize**scaleMachines
	w.eventuallyWithin(lifetime, "all machines are provisioned", func() (string, bool) {
		list := dev("DevMachineList", "")
		all := &unstructured.UnstructuredList{Object: list.Object}
		if err := w.List(w.ctx, all, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		n := 0
		for i := range all.Items {
			if ok, _, _ := unstructured.NestedBool(all.Items[i].Object, "status", "initialization", "provisioned"); ok {
				n++
			}
		}
		return fmt.Sprintf("%d of %d", n, machines), n == machines
	})
	ready := time.Now()
	after := provider.scrape(t, requests)
	writes := 0
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
		writes += total(after, "method", method) - total(before, "method", method)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", provider.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, resident, _ := strings.Cut(string(status), "VmRSS:")
	resident, _, _ = strings.Cut(strings.TrimSpace(resident), "\n")
	t.Logf("Cluster API's in-memory provider: %d machines in %d Clusters: created in %.1f s, ready after %.1f s; %.1f requests "+
		"to the API server for each machine, %.1f of them writes; resident %s", machines, *fleetSize,
		created.Sub(began).Seconds(), ready.Sub(began).Seconds(), float64(total(after)-total(before))/float64(machines),
		float64(writes)/float64(machines), resident)
}

// dev returns an object of the in-memory provider.
func dev(kind, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
	o.SetKind(kind)
	if name != "" {
		o.SetName(name)
		o.SetNamespace(namespace)
		o.SetAnnotations(map[string]string{"made-by": "test"}) // without any, the provider panics
		o.SetOwnerReferences(owners)
		o.Object["spec"] = map[string]any{"backend": map[string]any{"inMemory": map[string]any{}}}
	}
	return o
}

// createInMemory creates a Cluster and its machines, as Cluster API leaves them for the provider: the machines once the
// infrastructure of the Cluster is provisioned.
func (w *fixture) createInMemory(ctx context.Context, name string, machines int) error {
	labels := map[string]string{clusterv1.ClusterNameLabel: name}
	ref := func(kind, name string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: "infrastructure.cluster.x-k8s.io", Kind: kind, Name: name}
	}
	owner := func(kind string, o client.Object) metav1.OwnerReference {
		return metav1.OwnerReference{
			APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(), Controller: new(true),
		}
	}
	cluster := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, name)}
	cluster.Spec.InfrastructureRef = ref("DevCluster", name)
	if err := w.Create(ctx, cluster); err != nil {
		return err
	}
	infra := dev("DevCluster", name, owner("Cluster", cluster))
	infra.SetLabels(labels)
	if err := w.Create(ctx, infra); err != nil {
		return err
	}
	for ok := false; !ok; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
		if err := w.Get(ctx, client.ObjectKeyFromObject(infra), infra); err != nil {
			return err
		}
		ok, _, _ = unstructured.NestedBool(infra.Object, "status", "initialization", "provisioned")
	}
	before := cluster.DeepCopy()
	cluster.Status.Initialization.InfrastructureProvisioned = new(true)
	if err := w.Status().Patch(ctx, cluster, client.MergeFrom(before)); err != nil {
		return err
	}
	for i := range machines {
		m := &clusterv1.Machine{ObjectMeta: objectMeta(namespace, fmt.Sprintf("%s-%02d", name, i))}
		m.Labels = labels
		m.Spec.ClusterName, m.Spec.Version = name, newVersion
		m.Spec.Bootstrap.DataSecretName = new("bootstrap") // which the provider does not read
		m.Spec.InfrastructureRef = ref("DevMachine", m.Name)
		if err := w.Create(ctx, m); err != nil {
			return err
		}
		infra := dev("DevMachine", m.Name, owner("Machine", m))
		infra.SetLabels(labels)
		if err := w.Create(ctx, infra); err != nil {
			return err
		}
	}
	return nil
}
