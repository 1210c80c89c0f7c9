// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/machines"
)

var held = regexp.MustCompile(`(?m)^hookgate_machines_held(?:\{[^}]*\})? (\S+)$`)

// createMachine creates the Machine of a Cluster. It is being deleted, and Cluster API waits for the hook before its
// drain.
func (w *fixture) createMachine(ctx context.Context, i int) error {
	m := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"clusterName": clusterName(i)}}}
	m.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("Machine"))
	m.SetNamespace("default")
	m.SetName(clusterName(i))
	m.SetFinalizers([]string{"machine.cluster.x-k8s.io"})
	m.SetAnnotations(map[string]string{machines.DrainAnnotation: "hookgate"})
	if err := w.client.Create(ctx, m); err != nil {
		return err
	}
	if err := w.client.Delete(ctx, m.DeepCopy()); err != nil {
		return err
	}
	status, err := json.Marshal(map[string]any{"status": map[string]any{
		"deletion": clusterv1.MachineDeletionStatus{WaitForPreDrainHookStartTime: metav1.Now()},
		"conditions": []metav1.Condition{{
			Type: clusterv1.MachineDeletingCondition, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Now(),
			Reason: clusterv1.MachineDeletingWaitingForPreDrainHookReason,
		}},
	}})
	if err != nil {
		return err
	}
	return w.client.Status().Patch(ctx, m, client.RawPatch("application/merge-patch+json", status))
}

// holdMachines runs a gateway until it has written into n Machines that they are held.
func (w *fixture) holdMachines(ctx context.Context, n int) error {
	g, err := w.startGateway(ctx, "--machines", "--kube-api-qps", "1000")
	if err != nil {
		return err
	}
	defer g.Stop()
	if _, err = g.awaitHeld(ctx, time.Now(), n); err != nil {
		return err
	}
	began := time.Now()
	for {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
		if err := w.client.List(ctx, list); err != nil {
			return err
		}
		written := 0
		for i := range list.Items {
			conditions, _, err := unstructured.NestedSlice(list.Items[i].Object, "status", "conditions")
			if err != nil {
				return err
			}
			if len(conditions) == 2 {
				written++
			}
		}
		if written == n {
			return nil
		}
		if err := pause(ctx, began); err != nil {
			return fmt.Errorf("%w: %d of %d Machines have the condition", err, written, n)
		}
	}
}

// awaitHeld returns how long it took until n Machines were held.
func (g *gateway) awaitHeld(ctx context.Context, began time.Time, n int) (time.Duration, error) {
	for {
		now, err := g.sum(ctx, held)
		if err != nil {
			return 0, err
		}
		if now == n {
			return time.Since(began), nil
		}
		if err := pause(ctx, began); err != nil {
			return 0, fmt.Errorf("%w: %d of %d Machines are held:%s", err, now, n, g.LogTail())
		}
	}
}
