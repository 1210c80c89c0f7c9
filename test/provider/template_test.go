// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// newTemplate creates a template of machines that a Cluster owns, as Cluster API makes it do.
func (w *fixture) newTemplate(name string, cluster *clusterv1.Cluster, parameters string) *infrav1.HookgateMachineTemplate {
	w.t.Helper()
	o := &infrav1.HookgateMachineTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if cluster != nil {
		o.OwnerReferences = []metav1.OwnerReference{owner("Cluster", cluster, false)}
	}
	o.Spec.Template.Spec.Parameters = jsonOf(parameters)
	w.create(o)
	return o
}

// announces makes the cloud announce capacities, and the class discover it.
func (w *fixture) announces(list ...*infrahooksv1alpha1.MachineCapacity) {
	w.t.Helper()
	w.cloud.mu.Lock()
	w.cloud.announce = func(r *infrahooksv1alpha1.DiscoverInfrastructureResponse) { r.MachineCapacities = list }
	w.cloud.mu.Unlock()
	class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	update(w, class, func(c *infrav1.InfrastructureClass) {
		if c.Spec.Handlers.DeleteCluster == "" {
			c.Spec.Handlers.DeleteCluster = "h1"
		} else {
			c.Spec.Handlers.DeleteCluster = ""
		}
	})
}

func capacityOf(size, cpu, memory, architecture string) *infrahooksv1alpha1.MachineCapacity {
	return &infrahooksv1alpha1.MachineCapacity{
		Parameters: schemaOf(`{"size":"` + size + `"}`), Capacity: map[string]string{"cpu": cpu, "memory": memory},
		Architecture: architecture, OperatingSystem: "linux",
	}
}

// offers reports whether a template has exactly these resources.
func offers(want map[string]string) func(*infrav1.HookgateMachineTemplate) bool {
	return func(o *infrav1.HookgateMachineTemplate) bool {
		got := map[string]string{}
		for name, quantity := range o.Status.Capacity {
			got[string(name)] = quantity.String()
		}
		return maps.Equal(got, want)
	}
}

// What the extension announces is in the status of templates, for an autoscaler, and what others wrote stays.
func TestTemplatesHaveTheCapacityOfTheirMachines(t *testing.T) {
	w := newFixture(t)
	w.announces(capacityOf("small", "2", "4Gi", "arm64"), capacityOf("large", "16", "64Gi", "amd64"))
	cluster, _ := w.readyCluster("c")
	small, large := w.newTemplate("small", cluster, "{}"), w.newTemplate("large", cluster, `{"size":"large"}`) // small is the default
	wrong, foreign := w.newTemplate("wrong", cluster, `{"size":"huge"}`), w.newTemplate("foreign", nil, "{}")
	eventually(w, small, "small", offers(map[string]string{"cpu": "2", "memory": "4Gi"}))
	eventually(w, large, "large", offers(map[string]string{"cpu": "16", "memory": "64Gi"}))
	if got := large.Status.NodeInfo; got != (infrav1.NodeInfo{Architecture: "amd64", OperatingSystem: "linux"}) {
		t.Errorf("the node info is %v", got)
	}
	// A user knows better, and adds something.
	if err := w.client.Status().Patch(t.Context(), large, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"capacity":{"cpu":"12","nvidia.com/gpu":"1"},"nodeInfo":{"architecture":"arm64"}}}`)),
		client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	w.announces(capacityOf("small", "4", "8Gi", "arm64"), capacityOf("large", "32", "128Gi", "amd64"))
	eventually(w, small, "larger", offers(map[string]string{"cpu": "4", "memory": "8Gi"}))
	eventually(w, large, "as the user said", offers(map[string]string{"cpu": "12", "memory": "128Gi", "nvidia.com/gpu": "1"}))
	if got := large.Status.NodeInfo; got != (infrav1.NodeInfo{Architecture: "arm64", OperatingSystem: "linux"}) {
		t.Errorf("the node info is %v", got)
	}
	before := w.writes.all()
	w.restart() // what is written is not written again
	// What is no longer announced goes, and what the user wrote stays.
	w.announces(capacityOf("small", "4", "8Gi", "arm64"))
	eventually(w, large, "what the user wrote alone", offers(map[string]string{"cpu": "12", "nvidia.com/gpu": "1"}))
	if slices.ContainsFunc(w.writes.all(), func(s string) bool { return s == "PATCH "+pathOf(small)+"/status" }) {
		t.Errorf("an unchanged template was written after a restart; before it there were %v", before)
	}
	for _, o := range []*infrav1.HookgateMachineTemplate{wrong, foreign} {
		if w.get(o); len(o.Status.Capacity) != 0 {
			t.Errorf("%s has the capacity %v", o.Name, o.Status.Capacity)
		}
	}
	// A capacity that is none makes the class say so.
	w.announces(&infrahooksv1alpha1.MachineCapacity{Capacity: map[string]string{"cpu": "four"}})
	class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	eventually(w, class, "not ready", func(c *infrav1.InfrastructureClass) bool {
		return has(c, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ClassNotReadyReason, `machineCapacities[0].capacity[cpu]: "four" is not a quantity`)
	})
	if q := large.Status.Capacity[corev1.ResourceCPU]; q.Cmp(resource.MustParse("12")) != 0 {
		t.Errorf("the user's capacity is %v", q)
	}
}

// A template of a paused Cluster, or one that is paused itself, says so, and keeps what it shows.
func TestAPausedTemplateSaysSo(t *testing.T) {
	w := newFixture(t)
	w.announces(capacityOf("small", "2", "4Gi", "arm64"))
	cluster, _ := w.readyCluster("c")
	o := w.newTemplate("small", cluster, "{}")
	paused := func(status metav1.ConditionStatus, text string) func(*infrav1.HookgateMachineTemplate) bool {
		return func(o *infrav1.HookgateMachineTemplate) bool {
			return has(o, infrav1.PausedCondition, status, "", text)
		}
	}
	eventually(w, o, "not paused", paused(metav1.ConditionFalse, ""))
	eventually(w, o, "small", offers(map[string]string{"cpu": "2", "memory": "4Gi"}))
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
	eventually(w, o, "paused", paused(metav1.ConditionTrue, "spec.paused of the Cluster"))
	update(w, o, func(o *infrav1.HookgateMachineTemplate) {
		o.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	})
	eventually(w, o, "paused twice", paused(metav1.ConditionTrue, "annotation "+clusterv1.PausedAnnotation))
	w.announces(capacityOf("small", "4", "8Gi", "arm64"))
	other := w.newTemplate("other", cluster, "{}")
	eventually(w, other, "paused", paused(metav1.ConditionTrue, "")) // the queue has come past the first
	if !offers(map[string]string{"cpu": "2", "memory": "4Gi"})(o) {
		t.Errorf("a paused template has the capacity %v", o.Status.Capacity)
	}
	update(w, cluster, func(c *clusterv1.Cluster) { c.Spec.Paused = nil })
	update(w, o, func(o *infrav1.HookgateMachineTemplate) { o.Annotations = nil })
	eventually(w, o, "larger", offers(map[string]string{"cpu": "4", "memory": "8Gi"}))
	eventually(w, o, "not paused", paused(metav1.ConditionFalse, ""))
}

func pathOf(o *infrav1.HookgateMachineTemplate) string {
	return "/apis/infrastructure.hookgate.dev/v1alpha1/namespaces/" + o.Namespace + "/hookgatemachinetemplates/" + o.Name
}
