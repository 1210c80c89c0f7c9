// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// command starts hookgate infrastructure for the fixture, in place of the controllers in this process.
func (w *fixture) command(t *testing.T) *process.Process {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, w.server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return process.Run(t, "controllers", exec.CommandContext(t.Context(), process.Program(t, "HOOKGATE_BIN"),
		"infrastructure", "--gateway", "grpc://"+w.address, "--kubeconfig", kubeconfig, "--namespace", w.namespace,
		"--watch-filter", w.namespace, "--diagnostics-address", "127.0.0.1:0"))
}

// hang makes the cloud do the work of the first request that is of a kind, and never answer it. It returns a channel
// that is closed when that has happened.
func (w *fixture) hang(of func(proto.Message) bool, work func(proto.Message)) <-chan struct{} {
	done, release := make(chan struct{}), make(chan struct{})
	w.t.Cleanup(sync.OnceFunc(func() { close(release) }))
	var hangs atomic.Bool
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		if !of(req) {
			return nil, nil
		}
		if !hangs.Swap(true) { // those after it are answered
			work(req)
			close(done)
			<-release
		}
		return nil, nil
	})
	return done
}

// Controllers that are killed after a machine was made, and before they know it, find it again; and the same in
// deletion.
func TestKilledBeforeTheAnswer(t *testing.T) {
	process.Program(t, "HOOKGATE_BIN")
	w := newFixture(t)
	w.stop()
	p := w.command(t)
	w.readyCluster("c")
	made := w.hang(func(req proto.Message) bool {
		_, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest)
		return ok
	}, func(req proto.Message) {
		r, _ := req.(*infrahooksv1alpha1.ReconcileMachineRequest)
		if _, err := w.cloud.ReconcileMachine(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
	_, m := w.newMachine("c", "m")
	<-made
	p.Kill()
	p = w.command(t)
	eventually(w, m, "provisioned", isProvisioned)
	if n := w.cloud.madeOf(m.Spec.ExternalID); n != 1 || len(w.cloud.existing()) != 1 {
		t.Errorf("made %d times; there are %v", n, w.cloud.existing())
	}
	deleted := w.hang(func(req proto.Message) bool {
		_, ok := req.(*infrahooksv1alpha1.DeleteMachineRequest)
		return ok
	}, func(req proto.Message) {
		r, _ := req.(*infrahooksv1alpha1.DeleteMachineRequest)
		if _, err := w.cloud.DeleteMachine(t.Context(), r); err != nil {
			t.Error(err)
		}
	})
	w.delete(m)
	<-deleted
	p.Kill()
	if !w.get(m) {
		t.Error("released without an answer")
	}
	w.command(t)
	w.gone(m)
}

// Objects that were restored from a backup, with other UIDs and without status, stand for what they stood for.
func TestRestoredFromABackup(t *testing.T) {
	w := newFixture(t)
	cluster, infra := w.readyCluster("c")
	machine, m := w.readyMachine("c", "m")
	w.stop()
	restore := func(o client.Object, owner *metav1.OwnerReference) {
		for w.get(o) {
			o.SetFinalizers(nil)
			if err := w.client.Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			w.delete(o)
		}
		o.SetUID("")
		o.SetResourceVersion("")
		o.SetOwnerReferences(nil)
		if owner != nil {
			o.SetOwnerReferences([]metav1.OwnerReference{*owner})
		}
		w.create(o)
	}
	id, providerID, endpoint := m.Spec.ExternalID, m.Spec.ProviderID, infra.Spec.ControlPlaneEndpoint
	cluster.Status, machine.Status = clusterv1.ClusterStatus{}, clusterv1.MachineStatus{}
	restore(cluster, nil)
	restore(machine, nil)
	ofCluster, ofMachine := owner("Cluster", cluster, true), owner("Machine", machine, true)
	restore(infra, &ofCluster)
	restore(m, &ofMachine)
	w.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "m-bootstrap"}}) // its token has expired long since
	if isProvisioned(m) || len(m.Finalizers) != 0 {
		t.Fatalf("the status was restored: %v", m.Status)
	}
	w.start()
	eventually(w, m, "provisioned", isProvisioned)
	eventually(w, infra, "in sync", func(c *infrav1.HookgateCluster) bool {
		return has(c, infrav1.ReadyCondition, metav1.ConditionTrue, "", "") && c.Spec.ControlPlaneEndpoint == endpoint
	})
	if m.Spec.ExternalID != id || m.Spec.ProviderID != providerID || w.cloud.madeOf(id) != 1 || len(w.cloud.existing()) != 1 {
		t.Errorf("the machine is %v; made %d times", m.Spec, w.cloud.madeOf(id))
	}
	w.delete(m)
	w.gone(m)
}
