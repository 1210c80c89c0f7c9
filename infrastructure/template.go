// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/infrastructure/internal/clusterapi"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// capacityManager is the field manager of the status of templates. Server-side apply keeps what others wrote there.
const capacityManager = "hookgate-infrastructure"

// templates reconciles HookgateMachineTemplates of Clusters: it writes what machines of them have, for an autoscaler
// that scales from zero. It calls no extension: the class has what its extension announces.
type templates struct{ *base }

// Reconcile implements reconcile.Reconciler.
func (r *templates) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	t := &infrav1.HookgateMachineTemplate{}
	if err := r.client.Get(ctx, req.NamespacedName, t); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.watched(t) || unmanaged(t) || !t.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, nil
	}
	w := &scope{clusterName: clusterapi.ClusterName(t)}
	if w.clusterName == "" {
		return reconcile.Result{}, nil
	}
	if err := r.observeAround(ctx, w, t); err != nil {
		return reconcile.Result{}, err
	}
	desired := t.DeepCopy()
	cause := pausedBy(w.cluster, t)
	setPaused(desired, cause)
	if err := r.write(ctx, t, desired); err != nil || cause != "" {
		return reconcile.Result{}, err
	}
	announced, known := r.announced(ctx, t, w)
	if !known || t.Status.NodeInfo == announced.NodeInfo &&
		equality.Semantic.DeepEqual(t.Status.Capacity, announced.Capacity) {
		return reconcile.Result{}, nil
	}
	// The cache has no managed fields, which say what others wrote.
	if err := r.live.Get(ctx, req.NamespacedName, t); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, r.apply(ctx, t, announced)
}

// announced returns what the extension announces for a template. known is false if that cannot be said, as with
// parameters that are wrong. What was written then stays.
func (r *templates) announced(
	ctx context.Context, t *infrav1.HookgateMachineTemplate, w *scope,
) (s infrav1.HookgateMachineTemplateStatus, known bool) {
	if w.cluster == nil || w.class == nil || !w.class.Announced() || !w.namespaceAllowed {
		return s, false
	}
	schemaJSON, defaults := w.class.ParametersOf(infrav1.HookgateMachineKind, nil)
	schema, unusable := r.schemas.Compile(rawJSON(schemaJSON))
	if unusable != nil {
		return s, false // the class says so
	}
	at, own := field.NewPath("spec", "template", "spec", "parameters"), rawJSON(t.Spec.Template.Spec.Parameters)
	resolved, problems := schema.Resolve(ctx, at, rawJSON(defaults), own)
	if len(problems) > 0 {
		return s, false // the machines say so
	}
	if c := capacityOf(w.class.Status.MachineCapacities, resolved); c != nil {
		s.Capacity, s.NodeInfo = c.Capacity, c.NodeInfo
	}
	return s, true
}

// apply writes what the extension announces, without what others have written, and removes what it announced before.
func (r *templates) apply(
	ctx context.Context, t *infrav1.HookgateMachineTemplate, announced infrav1.HookgateMachineTemplateStatus,
) error {
	own, foreign, err := fieldsOf(t)
	if err != nil {
		return fmt.Errorf("read the managed fields of HookgateMachineTemplate %s: %w", client.ObjectKeyFromObject(t), err)
	}
	status := infrav1.HookgateMachineTemplateStatus{Capacity: corev1.ResourceList{}, NodeInfo: announced.NodeInfo}
	for name, quantity := range announced.Capacity {
		if !foreign.has("f:capacity", string(name)) {
			status.Capacity[name] = quantity
		}
	}
	if foreign.has("f:nodeInfo", "architecture") {
		status.NodeInfo.Architecture = ""
	}
	if foreign.has("f:nodeInfo", "operatingSystem") {
		status.NodeInfo.OperatingSystem = ""
	}
	if own.shows(t.Status, status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"apiVersion": infrav1.GroupVersion.String(), "kind": infrav1.HookgateMachineTemplateKind,
		"metadata": map[string]string{"name": t.Name, "namespace": t.Namespace}, "status": status,
	})
	if err != nil {
		return fmt.Errorf("write the status of HookgateMachineTemplate %s: %w", client.ObjectKeyFromObject(t), err)
	}
	return client.IgnoreNotFound(r.client.Status().Patch(ctx, t, client.RawPatch(types.ApplyPatchType, patch),
		client.FieldOwner(capacityManager)))
}

// fields are the fields of a status that a manager owns, by their part of the status.
type fields map[string]map[string]json.RawMessage

// fieldsOf returns the fields of the status of a template that these controllers own, and those that others own.
func fieldsOf(t *infrav1.HookgateMachineTemplate) (own, foreign fields, err error) {
	own, foreign = fields{}, fields{}
	for _, entry := range t.ManagedFields {
		if entry.FieldsV1 == nil {
			continue
		}
		var parts struct {
			Status map[string]json.RawMessage `json:"f:status"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &parts); err != nil {
			return nil, nil, err
		}
		into := foreign
		if entry.Manager == capacityManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			into = own
		}
		for part, text := range parts.Status {
			var names map[string]json.RawMessage
			if err := json.Unmarshal(text, &names); err != nil {
				return nil, nil, err
			}
			for name := range names {
				if into[part] == nil {
					into[part] = map[string]json.RawMessage{}
				}
				into[part][name] = nil
			}
		}
	}
	return own, foreign, nil
}

func (f fields) has(part, name string) bool {
	_, ok := f[part]["f:"+name]
	return ok
}

// shows reports whether a status has what is to be written, and f, the own fields, nothing else.
func (f fields) shows(stored, wanted infrav1.HookgateMachineTemplateStatus) bool {
	n := 0
	for name, quantity := range wanted.Capacity {
		have, ok := stored.Capacity[name]
		if !ok || have.Cmp(quantity) != 0 || !f.has("f:capacity", string(name)) {
			return false
		}
		n++
	}
	for _, info := range []struct{ name, stored, wanted string }{
		{"architecture", stored.NodeInfo.Architecture, wanted.NodeInfo.Architecture},
		{"operatingSystem", stored.NodeInfo.OperatingSystem, wanted.NodeInfo.OperatingSystem},
	} {
		if info.wanted == "" {
			continue
		}
		if info.stored != info.wanted || !f.has("f:nodeInfo", info.name) {
			return false
		}
		n++
	}
	for _, names := range f {
		for name := range names {
			if name != "." {
				n--
			}
		}
	}
	return n == 0
}

// toTemplates returns the templates of the Cluster that an object belongs to, or is.
func (r *base) toTemplates(ctx context.Context, o client.Object) []reconcile.Request {
	name := clusterapi.ClusterName(o)
	if name == "" {
		return nil
	}
	return r.listed(ctx, &infrav1.HookgateMachineTemplateList{}, client.InNamespace(o.GetNamespace()),
		client.MatchingFields{clusterIndex: name})
}

// capacitiesChanged reports whether something of a class has changed that templates and pools show.
func capacitiesChanged(before, after *infrav1.InfrastructureClass) bool {
	return classChanged(before, after) ||
		!equality.Semantic.DeepEqual(before.Status.MachineCapacities, after.Status.MachineCapacities)
}

// templateCluster returns the name of the Cluster of a template for the index.
func templateCluster(o client.Object) []string {
	if clusterapi.OwnerOf(o, clusterv1.GroupVersion.Group, "ClusterClass") != "" {
		return nil // a template of templates
	}
	return present(clusterapi.ClusterName(o))
}
