// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/internal/calls"
	"github.com/hookgate/hookgate/infrastructure/internal/gatewaytest"
	"github.com/hookgate/hookgate/infrastructure/parameters"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// The short names of the contract's values.
const (
	succeeded = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	refused   = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
	ready     = infrahooksv1alpha1.Phase_PHASE_READY
	gone      = infrahooksv1alpha1.DeletionState_DELETION_STATE_GONE
	deleting  = infrahooksv1alpha1.DeletionState_DELETION_STATE_DELETING
)

// token is the credential of all classes.
const token = "s3cr3t-t0ken"

// subject is a kind of objects that an extension makes and deletes.
type subject struct {
	kind, makes, deletes, finalizer string
	empty                           func() object
	externalID                      func(object) *string
	controller                      func(*base) reconcile.Reconciler
}

var subjects = []subject{
	{
		infrav1.HookgateClusterKind, "ReconcileCluster", "DeleteCluster", infrav1.ClusterFinalizer,
		func() object { return &infrav1.HookgateCluster{} },
		func(o object) *string { return &o.(*infrav1.HookgateCluster).Spec.ExternalID },
		func(b *base) reconcile.Reconciler { return &clusters{base: b, pace: newScheduler(b.now)} },
	},
	{
		infrav1.HookgateMachineKind, "ReconcileMachine", "DeleteMachine", infrav1.MachineFinalizer,
		func() object { return &infrav1.HookgateMachine{} },
		func(o object) *string { return &o.(*infrav1.HookgateMachine).Spec.ExternalID },
		func(b *base) reconcile.Reconciler {
			return &machines{base: b, pace: newScheduler(b.now), creation: newCreation()}
		},
	},
	{
		infrav1.HookgateMachinePoolKind, "ReconcileMachinePool", "DeleteMachinePool", infrav1.MachinePoolFinalizer,
		func() object { return &infrav1.HookgateMachinePool{} },
		func(o object) *string { return &o.(*infrav1.HookgateMachinePool).Spec.ExternalID },
		func(b *base) reconcile.Reconciler {
			return &pools{base: b, pace: newScheduler(b.now), missing: newMissing(), absent: newMissing()}
		},
	},
}

// forSubjects runs a test for each kind, with an object that has not been made.
func forSubjects(t *testing.T, test func(t *testing.T, m *memory)) {
	t.Helper()
	for _, s := range subjects {
		t.Run(s.kind, func(t *testing.T) { test(t, newMemory(t, s)) })
	}
}

// memory is an API server in memory with one object of each kind that a subject needs, all of the name "x", the
// controller of the subject, which the test drives, and an extension.
type memory struct {
	subject

	t          *testing.T
	server     client.Client // as others read and write it
	base       *base
	controller reconcile.Reconciler
	now        time.Time
	events     chan string
	asked      []string                                         // the hooks that were called
	writes     []string                                         // of the controller, such as "patch HookgateMachine/status"
	fails      func(write string) error                         // if not nil, decides which of them fail
	answer     func(req, out proto.Message) *gatewaytest.Answer // if not nil, changes out, or answers something else
}

var errCut = errors.New("the connection to the API server is cut")

func newMemory(t *testing.T, s subject) *memory {
	t.Helper()
	m := &memory{subject: s, t: t, now: time.Now().Truncate(time.Second), events: make(chan string, 100)}
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(surroundings(s)...).WithStatusSubresource(
		&infrav1.InfrastructureClass{}, &infrav1.HookgateCluster{}, &infrav1.HookgateMachine{}, &infrav1.HookgateMachinePool{})
	if err := index(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	server := builder.Build()
	gateway, err := calls.New(calls.Config{Gateway: gatewaytest.Gateway(m.call)})
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return m.now }
	written := interceptor.NewClient(server, m.interceptors())
	m.server = server
	m.base = &base{
		client: written, live: server, calls: gateway, schemas: parameters.NewCache(),
		secrets: newSecrets(server, written, now), ids: newProviderIDs(written), metrics: NewMetrics(prometheus.NewRegistry()),
		events: newRecorder(&events.FakeRecorder{Events: m.events}, now), logger: slog.New(slog.DiscardHandler), now: now,
	}
	m.controller = s.controller(m.base)
	return m
}

// indexer adds indexes to a client in memory.
type indexer struct{ builder *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	i.builder.WithIndex(o, field, values)
	return nil
}

// surroundings returns the object of a subject that has not been made, and what it needs.
func surroundings(s subject) []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "team", Labels: map[string]string{clusterv1.ClusterNameLabel: "x"}}
	}
	ownedBy := func(kind string) metav1.ObjectMeta {
		m := meta("x")
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: kind, Name: "x"}}
		return m
	}
	class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: "x", Finalizers: []string{infrav1.ClassFinalizer}}}
	class.Spec.ExtensionRef.Name = "acme"
	class.Spec.CredentialsRef = &infrav1.SecretReference{Namespace: "team", Name: "credentials"}
	class.Status.ProviderIDPrefix = "fake://"
	class.Status.Handlers = infrav1.Handlers{
		ReconcileCluster: "rc", DeleteCluster: "dc", ReconcileMachine: "rm", DeleteMachine: "dm",
		ReconcileMachinePool: "rp", DeleteMachinePool: "dp",
	}
	set(class, infrav1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
	infra := clusterv1.ContractVersionedObjectReference{APIGroup: infrav1.GroupVersion.Group, Name: "x"}
	cluster := &clusterv1.Cluster{ObjectMeta: meta("x")}
	cluster.Spec.InfrastructureRef = infra
	cluster.Spec.InfrastructureRef.Kind = infrav1.HookgateClusterKind
	hookgateCluster := &infrav1.HookgateCluster{ObjectMeta: ownedBy("Cluster")}
	hookgateCluster.Spec.InfrastructureClassName = "x"
	list := []client.Object{
		class, cluster, hookgateCluster,
		&corev1.Secret{ObjectMeta: meta("credentials"), Data: map[string][]byte{"token": []byte(token)}},
		&corev1.Secret{ObjectMeta: meta("bootstrap"), Data: map[string][]byte{"value": []byte("#cloud-config")}},
	}
	if s.kind == infrav1.HookgateClusterKind {
		return list
	}
	hookgateCluster.Spec.ExternalID = "cluster"
	hookgateCluster.Status.Initialization.Provisioned, cluster.Status.Initialization.InfrastructureProvisioned = new(true), new(true)
	if s.kind == infrav1.HookgateMachineKind {
		machine := &clusterv1.Machine{ObjectMeta: meta("x")}
		machine.Spec.ClusterName, machine.Spec.Bootstrap.DataSecretName = "x", new("bootstrap")
		machine.Spec.InfrastructureRef = infra
		machine.Spec.InfrastructureRef.Kind = infrav1.HookgateMachineKind
		return append(list, machine, &infrav1.HookgateMachine{ObjectMeta: ownedBy("Machine")})
	}
	machinePool := &clusterv1.MachinePool{ObjectMeta: meta("x")}
	machinePool.Spec.ClusterName, machinePool.Spec.Replicas = "x", new(int32(1))
	machinePool.Spec.Template.Spec.Bootstrap.DataSecretName = new("bootstrap")
	pool := &infrav1.HookgateMachinePool{ObjectMeta: ownedBy("MachinePool")}
	pool.Spec.InstanceManagement = infrav1.InstanceManagementGroup
	return append(list, machinePool, pool)
}

// interceptors record the writes of the controller, and make those fail that should.
func (m *memory) interceptors() interceptor.Funcs {
	do := func(verb string, o client.Object, part string, write func() error) error {
		name := verb + " " + kindOf(o) + part
		if _, ok := o.(*clusterv1.Machine); ok {
			name = verb + " Machine"
		}
		if m.fails != nil {
			if err := m.fails(name); err != nil {
				return err
			}
		}
		m.writes = append(m.writes, name)
		return write()
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return do("create", o, "", func() error { return c.Create(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return do("delete", o, "", func() error { return c.Delete(ctx, o, options...) })
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption,
		) error {
			return do("patch", o, "", func() error { return c.Patch(ctx, o, p, options...) })
		},
		SubResourcePatch: func(
			ctx context.Context, c client.Client, part string, o client.Object, p client.Patch,
			options ...client.SubResourcePatchOption,
		) error {
			return do("patch", o, "/"+part, func() error { return c.SubResource(part).Patch(ctx, o, p, options...) })
		},
	}
}

// call answers as an extension that has made or deleted everything at once.
func (m *memory) call(_ context.Context, h *catalog.Hook, _ string, req proto.Message) *gatewaytest.Answer {
	if h.Hook == "BeforeMachineCreate" { // nobody holds anything here
		return &gatewaytest.Answer{Message: &machinesv1alpha1.BeforeMachineCreateResponse{Status: succeeded}}
	}
	m.asked = append(m.asked, h.Hook)
	out := h.Response.New().Interface()
	switch a := out.(type) {
	case *infrahooksv1alpha1.ReconcileClusterResponse:
		a.Status, a.Phase = succeeded, ready
		a.ControlPlaneEndpoint = &infrahooksv1alpha1.Endpoint{Host: "api.example", Port: 6443}
	case *infrahooksv1alpha1.ReconcileMachineResponse:
		a.Status, a.Phase, a.ProviderId = succeeded, ready, "fake://x"
	case *infrahooksv1alpha1.ReconcileMachinePoolResponse:
		a.Status, a.Phase, a.InstanceCount = succeeded, ready, new(int32(1))
		a.Instances = []*infrahooksv1alpha1.Instance{{Name: "i", ProviderId: "fake://i", Phase: ready}}
	case *infrahooksv1alpha1.DeleteClusterResponse:
		a.Status, a.State = succeeded, gone
	case *infrahooksv1alpha1.DeleteMachineResponse:
		a.Status, a.State = succeeded, gone
	case *infrahooksv1alpha1.DeleteMachinePoolResponse:
		a.Status, a.State = succeeded, gone
	}
	if m.answer != nil {
		if other := m.answer(req, out); other != nil {
			return other
		}
	}
	return &gatewaytest.Answer{Message: out}
}

var theRequest = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "team", Name: "x"}}

// reconcile has the controller look at the object, after a time.
func (m *memory) reconcile(after time.Duration) (reconcile.Result, error) {
	m.t.Helper()
	m.now = m.now.Add(after)
	return m.controller.Reconcile(m.t.Context(), theRequest)
}

// must is reconcile, and fails the test if that does.
func (m *memory) must(after time.Duration) {
	m.t.Helper()
	if _, err := m.reconcile(after); err != nil {
		m.t.Fatal(err)
	}
}

// made has the object made.
func (m *memory) made() {
	m.t.Helper()
	if m.must(0); !wasProvisioned(m.stored()) {
		m.t.Fatalf("it has not been made: %v", m.stored().GetConditions())
	}
	m.asked, m.writes = nil, nil
}

// stored returns the object as it is stored; nil if it is gone.
func (m *memory) stored() object {
	m.t.Helper()
	o := m.empty()
	err := m.server.Get(m.t.Context(), theRequest.NamespacedName, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return o
}

// change changes the object as somebody else does.
func (m *memory) change(change func(o object)) {
	m.t.Helper()
	o := m.stored()
	change(o)
	if err := m.server.Update(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
}

// remove deletes an object as somebody else does.
func (m *memory) remove(o client.Object) {
	m.t.Helper()
	if err := m.server.Delete(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
}
