// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package topology computes the objects that Cluster API makes of a Cluster with a topology, with Cluster API's own
// code: its webhooks for the Cluster, its controller for the variables of the ClusterClass, and the generator of the
// desired state.
package topology

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterclass"
	coreadmission "sigs.k8s.io/cluster-api/core/webhooks/admission"
	"sigs.k8s.io/cluster-api/exp/topology/desiredstate"
	"sigs.k8s.io/cluster-api/exp/topology/scope"
	"sigs.k8s.io/cluster-api/util/cache"
	"sigs.k8s.io/cluster-api/util/conditions"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/extensions"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/store"
)

// Render is what Cluster API makes of a Cluster.
type Render struct {
	Cluster *clusterv1.Cluster
	// Objects are the desired objects. Names that do not exist yet end in xxxxx.
	Objects []Object
	// Live are the objects that the Cluster has, as the API server has them, by role.
	Live map[string]*unstructured.Unstructured
	// Steps are the patches of the ClusterClass, in their order.
	Steps []Step
	// Warnings are those of the webhooks.
	Warnings []string

	// Client reads the objects of the render, and Extensions asks the server.
	Client     *store.Store
	Extensions *extensions.Client
}

// Config says what is rendered. All fields are required but Change.
type Config struct {
	Store      *store.Store
	Cluster    client.ObjectKey
	Extensions *extensions.Client
	// Change changes the Cluster first. Nil changes nothing.
	Change func(*clusterv1.Cluster) error
}

// noWorkloadCluster is no connection to the nodes of a Cluster, which a settled state does not need.
type noWorkloadCluster struct{ clustercache.ClusterCache }

// New renders a Cluster. Cluster API's feature gates ClusterTopology and RuntimeSDK have to be on.
func New(ctx context.Context, c Config) (*Render, error) {
	r := &Render{Client: c.Store, Extensions: c.Extensions}
	class, err := r.admit(ctx, c)
	if err != nil {
		return nil, err
	}
	record := &recorder{}
	c.Extensions.Probe = record.probe
	evenNaming(class)
	record.prepare(class)
	b, err := blueprint(ctx, c.Store, r.Cluster.Spec.Topology, class)
	if err != nil {
		return nil, err
	}
	current, err := (&currentReader{c.Store, b, r.Cluster}).read(ctx)
	if err != nil {
		return nil, err
	}
	settled, err := settle(current, &b.Topology)
	if err != nil {
		return nil, err
	}
	desired, err := generate(ctx, c, b, settled)
	if err != nil {
		return nil, err
	}
	if r.Steps, err = record.result(desired); err != nil {
		return nil, err
	}
	return r, r.finish(ctx, current, desired)
}

// admit reads the Cluster and its ClusterClass, and does what Cluster API does when they are written: it finds the
// variables of the class, and defaults and validates the Cluster.
func (r *Render) admit(ctx context.Context, c Config) (*clusterv1.ClusterClass, error) {
	r.Cluster = &clusterv1.Cluster{}
	if err := c.Store.Get(ctx, c.Cluster, r.Cluster); err != nil {
		return nil, fmt.Errorf("read Cluster %q: %w", c.Cluster, err)
	}
	if !r.Cluster.Spec.Topology.IsDefined() {
		return nil, fmt.Errorf("spec.topology of Cluster %q is empty: Cluster API makes no objects from "+
			"it", c.Cluster)
	}
	if r.Cluster.UID == "" {
		r.Cluster.UID = "00000000-0000-0000-0000-000000000000" // the API server gives one; extensions may read it
	}
	if c.Change != nil {
		if err := c.Change(r.Cluster); err != nil {
			return nil, err
		}
	}
	class, err := reconciled(ctx, c, r.Cluster.GetClassKey())
	if err != nil {
		return nil, err
	}
	webhook := &coreadmission.Cluster{Client: c.Store}
	if err := webhook.Default(ctx, r.Cluster); err != nil {
		return nil, invalid(err)
	}
	r.Warnings, err = webhook.ValidateCreate(ctx, r.Cluster)
	return class, invalid(err)
}

// invalid returns an error of a webhook without what an API server would say around it.
func invalid(err error) error {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return errors.New(status.Status().Message)
	}
	return err
}

// reconciled returns a ClusterClass with the variables that its extensions define, as Cluster API's controller finds
// them. Without a server, those of the API server are used.
func reconciled(ctx context.Context, c Config, name client.ObjectKey) (*clusterv1.ClusterClass, error) {
	class := &clusterv1.ClusterClass{}
	if err := c.Store.Get(ctx, name, class); err != nil {
		return nil, fmt.Errorf("read ClusterClass %q: %w", name, err)
	}
	isReady := func() bool {
		return class.Generation == class.Status.ObservedGeneration &&
			conditions.IsTrue(class, clusterv1.ClusterClassVariablesReadyCondition)
	}
	isComplete := c.Extensions.Server == nil && isReady()
	if err := checkContracts(ctx, c.Store, class, !isComplete); err != nil {
		return nil, err
	}
	if isComplete {
		return class, nil
	}
	controller := &clusterclass.Reconciler{Client: c.Store, RuntimeClient: c.Extensions}
	for range 5 { // it comes back after it has written some conditions
		if _, err := controller.Reconcile(ctx, ctrl.Request{NamespacedName: name}); err != nil {
			return nil, fmt.Errorf("ClusterClass %q: %w", name.Name, err)
		}
		if err := c.Store.Get(ctx, name, class); err != nil {
			return nil, err
		}
		if isReady() {
			return class, nil
		}
	}
	return nil, fmt.Errorf("ClusterClass %q: its variables could not be found; is the ClusterClass paused?", name.Name)
}

// generate returns the desired state.
func generate(
	ctx context.Context, c Config, b *scope.ClusterBlueprint, current *scope.ClusterState,
) (*scope.ClusterState, error) {
	generator, err := desiredstate.NewGenerator(
		c.Store, noWorkloadCluster{}, c.Extensions, cache.New[cache.HookEntry](ctx, time.Hour),
		cache.New[desiredstate.GenerateUpgradePlanCacheEntry](ctx, time.Hour))
	if err != nil {
		return nil, err
	}
	s := scope.New(current.Cluster)
	s.Blueprint, s.Current = b, current
	return generator.Generate(ctx, s)
}

// finish collects the objects.
func (r *Render) finish(ctx context.Context, current, desired *scope.ClusterState) error {
	topology := &r.Cluster.Spec.Topology
	var machineDeployments, machinePools []string
	for i := range topology.Workers.MachineDeployments {
		machineDeployments = append(machineDeployments, topology.Workers.MachineDeployments[i].Name)
	}
	for i := range topology.Workers.MachinePools {
		machinePools = append(machinePools, topology.Workers.MachinePools[i].Name)
	}
	var err error
	if r.Objects, err = collect(r.Client.Scheme(), desired, machineDeployments, machinePools); err != nil {
		return err
	}
	for name := range current.MachineDeployments { // those that the topology does not have any more
		if desired.MachineDeployments[name] == nil {
			machineDeployments = append(machineDeployments, name)
		}
	}
	for name := range current.MachinePools {
		if desired.MachinePools[name] == nil {
			machinePools = append(machinePools, name)
		}
	}
	live, err := collect(r.Client.Scheme(), current, machineDeployments, machinePools)
	if err != nil {
		return err
	}
	r.Live = map[string]*unstructured.Unstructured{}
	for i := range live {
		o := live[i].Unstructured
		if original := r.Client.Original(o.GroupVersionKind(), client.ObjectKeyFromObject(o)); original != nil {
			o = original
		}
		r.Live[live[i].Role] = o
	}
	for i := range r.Objects {
		was := r.Live[r.Objects[i].Role]
		r.Objects[i].isNew = was == nil || was.GetName() != r.Objects[i].GetName()
		if err := fillIn(ctx, &r.Objects[i]); err != nil {
			return err
		}
	}
	evenNames(r.Objects)
	return nil
}

// Object returns the object of a role; nil if there is none.
func (r *Render) Object(role string) *unstructured.Unstructured {
	for i := range r.Objects {
		if r.Objects[i].Role == role {
			return r.Objects[i].Unstructured
		}
	}
	return nil
}

// Close closes the connections to the server.
func (r *Render) Close() {
	if r.Extensions.Server != nil {
		r.Extensions.Server.Close()
	}
}
