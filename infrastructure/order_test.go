// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/infrastructure/internal/gatewaytest"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// create creates an object as somebody else does.
func (m *memory) create(o client.Object) {
	m.t.Helper()
	if err := m.server.Create(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
}

// condition returns a condition of the object as "False Deleting: message".
func (m *memory) condition(kind string) string {
	m.t.Helper()
	c := meta.FindStatusCondition(m.stored().GetConditions(), kind)
	if c == nil {
		return "none"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

// A cluster is deleted after all machines and pools that use it.
func TestClusterGoesLast(t *testing.T) {
	m := newMemory(t, subjects[0])
	m.made()
	labelled := metav1.ObjectMeta{Name: "user", Namespace: "team", Labels: map[string]string{clusterv1.ClusterNameLabel: "x"}}
	users := []client.Object{&infrav1.HookgateMachinePool{ObjectMeta: labelled}, &infrav1.HookgateMachine{ObjectMeta: labelled}}
	for _, o := range users {
		m.create(o)
	}
	m.remove(m.stored())
	for _, o := range users {
		m.must(time.Hour)
		m.wantAsked("the cluster is in use")
		if got, want := m.condition(infrav1.ReadyCondition), "waits until the "+kindOf(o)+"s of the Cluster are gone"; !strings.HasSuffix(got, want) {
			t.Errorf("Ready is %s, want %s", got, want)
		}
		m.remove(o)
	}
	m.must(time.Hour)
	m.wantAsked("nothing is left", "DeleteCluster")
}

// A class is kept, and kept up to date, until no object of any namespace uses it, also if that cannot be read.
func TestClassGoesLast(t *testing.T) {
	m := newMemory(t, subjects[0])
	c := &classes{base: m.base, pace: newScheduler(m.base.now)}
	key := client.ObjectKey{Name: "x"}
	look := func() (kept bool, err error) {
		m.now = m.now.Add(time.Hour)
		_, err = c.Reconcile(t.Context(), requestOf(&infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: "x"}}))
		return m.server.Get(t.Context(), key, &infrav1.InfrastructureClass{}) == nil, err
	}
	m.remove(&infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
	recorded := metav1.ObjectMeta{Name: "user", Namespace: "other", Annotations: map[string]string{infrav1.ClassAnnotation: "x"}}
	users := []client.Object{
		&infrav1.HookgateCluster{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "team"}},
		&infrav1.HookgateMachine{ObjectMeta: recorded}, &infrav1.HookgateMachinePool{ObjectMeta: recorded},
	}
	for _, o := range users[1:] {
		m.create(o)
	}
	for i, o := range users {
		if kept, err := look(); !kept || err != nil {
			t.Errorf("a class that a %s uses is kept: %t, %v", kindOf(o), kept, err)
		}
		class := &infrav1.InfrastructureClass{}
		if err := m.server.Get(t.Context(), key, class); err != nil {
			t.Fatal(err)
		}
		readyCondition := meta.FindStatusCondition(class.Status.Conditions, infrav1.ReadyCondition)
		if want := "but stays while objects use it, such as " + kindOf(o) + " " + o.GetNamespace() + "/" + o.GetName(); !strings.HasSuffix(readyCondition.Message, want) {
			t.Errorf("Ready is %+v, want %s", readyCondition, want)
		}
		if len(m.asked) != i+1 {
			t.Errorf("a class that is kept is not kept up to date: %v was called", m.asked)
		}
		m.remove(o)
	}
	for _, unreadable := range []client.ObjectList{
		&infrav1.HookgateClusterList{}, &infrav1.HookgateMachineList{}, &infrav1.HookgateMachinePoolList{},
	} {
		m.base.live = interceptor.NewClient(m.server.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if reflect.TypeOf(list) == reflect.TypeOf(unreadable) {
					return errCut
				}
				return w.List(ctx, list, options...)
			},
		})
		if kept, err := look(); !kept || err == nil {
			t.Errorf("%T cannot be read: the class is kept: %t, %v", unreadable, kept, err)
		}
	}
	m.base.live = m.server
	if kept, err := look(); kept || err != nil {
		t.Errorf("a class that nothing uses is kept: %t, %v", kept, err)
	}
}

// instances returns the HookgateMachines of the pool.
func (m *memory) instances() []infrav1.HookgateMachine {
	m.t.Helper()
	list := &infrav1.HookgateMachineList{}
	if err := m.server.List(m.t.Context(), list); err != nil {
		m.t.Fatal(err)
	}
	return list.Items
}

// newMemoryOfPool returns a memory with a pool whose instances are Machines, made of machines or by the hooks for pools,
// and the HookgateMachine of its only instance.
func newMemoryOfPool(t *testing.T, ofMachines bool) (*memory, *infrav1.HookgateMachine) {
	t.Helper()
	m := newMemory(t, subjects[2])
	m.change(func(o object) { o.(*infrav1.HookgateMachinePool).Spec.InstanceManagement = "" })
	if ofMachines {
		class := &infrav1.InfrastructureClass{}
		if err := m.server.Get(t.Context(), client.ObjectKey{Name: "x"}, class); err != nil {
			t.Fatal(err)
		}
		class.Status.Handlers.ReconcileMachinePool, class.Status.Handlers.DeleteMachinePool = "", ""
		if err := m.server.Status().Update(t.Context(), class); err != nil {
			t.Fatal(err)
		}
	}
	m.must(0)
	list := m.instances()
	if len(list) != 1 {
		t.Fatalf("there are %d HookgateMachines: %s", len(list), m.condition(infrav1.SyncedCondition))
	}
	list[0].Finalizers = []string{infrav1.MachineFinalizer} // as the controller of machines does
	if err := m.server.Update(t.Context(), &list[0]); err != nil {
		t.Fatal(err)
	}
	m.asked, m.writes = nil, nil
	return m, &list[0]
}

// A pool of machines is released when all of them are gone. Machines that Cluster API knows go by their Machines, so that
// their Nodes are drained.
func TestPoolGoesAfterItsMachines(t *testing.T) {
	m, instance := newMemoryOfPool(t, true)
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: instance.Name, Namespace: "team"}}
	machine.Finalizers = []string{"cluster.x-k8s.io/machine"}
	machine.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: infrav1.GroupVersion.Group, Kind: infrav1.HookgateMachineKind, Name: instance.Name,
	}
	m.create(machine)
	m.remove(m.stored())
	m.must(0)
	m.must(time.Minute)
	if !slices.Contains(m.writes, "delete Machine") || slices.Contains(m.writes, "delete HookgateMachine") {
		t.Errorf("the writes are %v, want the Machine deleted", m.writes)
	}
	if got := m.condition(infrav1.ReadyCondition); !strings.HasSuffix(got, "waits until the HookgateMachines of the pool are gone") {
		t.Errorf("Ready is %s", got)
	}
	if err := m.base.release(t.Context(), instance, infrav1.MachineFinalizer); err != nil {
		t.Fatal(err)
	}
	m.remove(instance)
	m.must(time.Minute)
	if m.wantAsked("it has nothing but machines"); m.stored() != nil {
		t.Errorf("the pool is kept without machines: %s", m.condition(infrav1.ReadyCondition))
	}
}

// A group is deleted when all its Nodes have been drained, and its HookgateMachines are released when it is gone, before
// the pool is.
func TestGroupGoesAfterTheDrain(t *testing.T) {
	m, _ := newMemoryOfPool(t, false)
	m.remove(m.stored())
	m.must(0)
	m.wantAsked("no Node has been drained")
	if got := m.condition(infrav1.ReadyCondition); !strings.HasSuffix(got, "waits until the Nodes of all Machines of the pool have been drained") {
		t.Errorf("Ready is %s", got)
	}
	m.answer = func(_, out proto.Message) *gatewaytest.Answer {
		out.(*infrahooksv1alpha1.DeleteMachinePoolResponse).State = deleting
		return nil
	}
	m.must(time.Minute)
	m.wantAsked("all have been drained", "DeleteMachinePool")
	if len(m.instances()) != 1 || m.stored() == nil {
		t.Error("something is released before the group is gone")
	}
	m.answer, m.fails = nil, func(write string) error {
		if write == "patch HookgateMachine" {
			return errCut
		}
		return nil
	}
	if _, err := m.reconcile(time.Minute); err == nil || m.stored() == nil {
		t.Errorf("the pool is released before its instances: %v", err)
	}
	m.fails = nil
	m.must(0)
	if left := m.instances(); len(left) != 0 || m.stored() != nil {
		t.Errorf("%d HookgateMachines and the pool %v are left", len(left), m.stored())
	}
}

// lists has a pool answered with instances of these names.
func (m *memory) lists(names ...string) {
	m.answer = func(_, out proto.Message) *gatewaytest.Answer {
		a := out.(*infrahooksv1alpha1.ReconcileMachinePoolResponse)
		a.Instances, a.InstanceCount = nil, new(int32(len(names)))
		for _, name := range names {
			a.Instances = append(a.Instances, &infrahooksv1alpha1.Instance{Name: name, ProviderId: "fake://" + name, Phase: ready})
		}
		return nil
	}
}

// An instance that the backend has replaced by itself is counted once, also by another process: no more instances are
// asked for, and none has to go for it.
func TestReplacedInstanceIsCountedOnce(t *testing.T) {
	m, _ := newMemoryOfPool(t, false)
	m.lists("j")
	answer := m.answer
	m.answer = func(req, out proto.Message) *gatewaytest.Answer {
		if r := req.(*infrahooksv1alpha1.ReconcileMachinePoolRequest); r.GetReplicas() != 1 {
			t.Errorf("%d instances are asked for, want 1", r.GetReplicas())
		}
		return answer(req, out)
	}
	for _, restart := range []bool{false, true, false, false, false, false} {
		if restart {
			m.controller = m.subject.controller(m.base)
		}
		m.must(2 * missingFor)
		m.must(time.Second) // the process has had an answer
		for _, i := range m.instances() {
			if i.Annotations[infrav1.InstanceAnnotation] == "j" && i.DeletionTimestamp != nil {
				t.Error("the new instance has to go")
			}
		}
	}
	if list := m.instances(); len(list) != 1 {
		t.Errorf("there are %d HookgateMachines, want that of the new instance alone", len(list))
	}
}

// An instance leaves a pool after two answers that lack it, half a minute apart. A list without any is not believed.
func TestInstancesLeaveAfterTwoAnswers(t *testing.T) {
	m, _ := newMemoryOfPool(t, false)
	look := func(reason, want string) {
		t.Helper()
		m.must(2 * missingFor)
		got := append(slices.Clone(m.stored().(*infrav1.HookgateMachinePool).Spec.ProviderIDList), "|")
		list := m.instances()
		slices.SortFunc(list, func(a, b infrav1.HookgateMachine) int { return strings.Compare(a.Spec.ProviderID, b.Spec.ProviderID) })
		for i := range list {
			if got = append(got, list[i].Annotations[infrav1.InstanceAnnotation]); instanceGone(&list[i]) {
				got = append(got, "is gone")
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: the pool has %s, want %s", reason, text, want)
		}
	}
	m.lists()
	for range 3 {
		look("an answer without any", "fake://i | i")
	}
	m.lists("j")
	look("one answer", "fake://i fake://j | i j")
	look("two answers", "fake://j | i is gone j")
	look("it is removed", "fake://j | i is gone j")
	look("it is released", "fake://j | j")
}

// A machine that has been recorded is asked for by its provider ID and without bootstrap data, also if the cache lacks the
// record, and keeps that ID.
func TestRecordedMachineIsNotMadeAgain(t *testing.T) {
	m := newMemory(t, subjects[1])
	stale := &infrav1.HookgateMachine{}
	m.answer = func(proto.Message, proto.Message) *gatewaytest.Answer { // the first call
		m.stored().(*infrav1.HookgateMachine).DeepCopyInto(stale)
		return nil
	}
	m.made()
	behind := interceptor.NewClient(m.server.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if machine, ok := o.(*infrav1.HookgateMachine); ok {
				stale.DeepCopyInto(machine)
				return nil
			}
			return w.Get(ctx, key, o, options...)
		},
	})
	m.answer = func(req, out proto.Message) *gatewaytest.Answer {
		r := req.(*infrahooksv1alpha1.ReconcileMachineRequest)
		if r.GetProviderId() != "fake://x" || r.GetBootstrap() != nil {
			t.Errorf("the request has the provider ID %q, bootstrap data: %t", r.GetProviderId(), r.GetBootstrap() != nil)
		}
		return nil
	}
	cache := m.base.client
	m.base.client = behind
	m.must(time.Hour)
	m.base.client = cache
	m.must(time.Hour)
	m.answer = func(_, out proto.Message) *gatewaytest.Answer {
		out.(*infrahooksv1alpha1.ReconcileMachineResponse).ProviderId = "fake://y"
		return nil
	}
	m.must(time.Hour)
	m.wantAsked("three times", "ReconcileMachine", "ReconcileMachine", "ReconcileMachine")
	if id := m.stored().(*infrav1.HookgateMachine).Spec.ProviderID; id != "fake://x" {
		t.Errorf("the provider ID is %q", id)
	}
	if got := m.condition(infrav1.SyncedCondition); !strings.HasPrefix(got, "False "+infrav1.ProviderIDConflictReason) {
		t.Errorf("Synced is %s", got)
	}
}

// The provider ID of another machine is not believed, be that stored or about to be.
func TestProviderIDOfAnotherMachine(t *testing.T) {
	m := newMemory(t, subjects[1])
	other := &infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "team"}}
	owner := ownerKey{infrav1.HookgateMachineKind, client.ObjectKeyFromObject(other)}
	if taken, err := m.base.ids.claim(t.Context(), owner, "fake://x"); taken != "" || err != nil {
		t.Fatal(taken, err)
	}
	refused := func(reason string) {
		t.Helper()
		m.must(time.Hour)
		if got := m.condition(infrav1.SyncedCondition); !strings.HasPrefix(got, "False "+infrav1.DuplicateProviderIDReason) ||
			!strings.Contains(got, owner.String()) || wasProvisioned(m.stored()) {
			t.Errorf("%s: Synced is %s", reason, got)
		}
	}
	refused("another is about to be recorded")
	m.base.ids.forget(owner)
	other.Spec.ProviderID = "fake://x"
	m.create(other)
	refused("another is recorded")
	m.remove(other)
	m.must(time.Hour)
	if !wasProvisioned(m.stored()) {
		t.Errorf("the other one is gone: Synced is %s", m.condition(infrav1.SyncedCondition))
	}
}

// needsZone are schemas for parameters, of which objects have none.
var needsZone = func() infrav1.ParameterSchemas {
	schema := &apiextensionsv1.JSON{Raw: []byte(`{"type":"object","required":["zone"],"properties":{"zone":{"type":"string"}}}`)}
	return infrav1.ParameterSchemas{Cluster: schema, Machine: schema, MachinePool: schema}
}()

// alter changes an object around the subject, or the subject, and its status.
func alter[T any, P interface {
	*T
	client.Object
}](m *memory, change func(P)) {
	m.t.Helper()
	key, o := theRequest.NamespacedName, P(new(T))
	if _, ok := client.Object(o).(*infrav1.InfrastructureClass); ok {
		key.Namespace = ""
	}
	if err := m.server.Get(m.t.Context(), key, o); err != nil {
		m.t.Fatal(err)
	}
	change(o)
	status := o.DeepCopyObject().(client.Object)
	if err := m.server.Update(m.t.Context(), o); err != nil {
		m.t.Fatal(err)
	}
	status.SetResourceVersion(o.GetResourceVersion())
	// Cluster API's kinds have no status apart from the object here.
	if err := m.server.Status().Update(m.t.Context(), status); client.IgnoreNotFound(err) != nil {
		m.t.Fatal(err)
	}
}

// What objects wait for, why the extension is not called about them, and that nothing keeps them meanwhile.
func TestWaits(t *testing.T) {
	const cluster, machine, pool = infrav1.HookgateClusterKind, infrav1.HookgateMachineKind, infrav1.HookgateMachinePoolKind
	class := func(change func(*infrav1.InfrastructureClass)) func(*memory) {
		return func(m *memory) { alter(m, change) }
	}
	hookgateCluster := func(change func(*infrav1.HookgateCluster)) func(*memory) {
		return func(m *memory) { alter(m, change) }
	}
	waiting := infrav1.WaitingForClusterInfrastructureReason
	for _, c := range []struct {
		reason, message string
		kinds           []string
		change          func(*memory)
	}{
		{infrav1.WaitingForBootstrapDataReason, "has not set the bootstrap data yet", []string{machine}, func(m *memory) {
			alter(m, func(m *clusterv1.Machine) { m.Spec.Bootstrap.DataSecretName = nil })
		}},
		{waiting, "is not provisioned yet", []string{machine, pool}, func(m *memory) {
			alter(m, func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil })
		}},
		{
			waiting, `HookgateCluster "x" is managed by "rack" (annotation cluster.x-k8s.io/managed-by), which has not set spec.externalID yet`,
			[]string{machine, pool}, hookgateCluster(func(c *infrav1.HookgateCluster) {
				c.Annotations, c.Spec.ExternalID = map[string]string{clusterv1.ManagedByAnnotation: "rack"}, ""
			}),
		},
		{waiting, `which has not set status.initialization.provisioned yet`, []string{machine, pool}, func(m *memory) {
			alter(m, func(c *clusterv1.Cluster) { c.Status.Initialization.InfrastructureProvisioned = nil })
			alter(m, func(c *infrav1.HookgateCluster) {
				c.Annotations, c.Status.Initialization.Provisioned = map[string]string{clusterv1.ManagedByAnnotation: "rack"}, nil
			})
		}},
		{infrav1.ClassNotFoundReason, "the Cluster has no HookgateCluster", []string{machine, pool}, func(m *memory) {
			alter(m, func(c *clusterv1.Cluster) { c.Spec.InfrastructureRef.Kind = "OtherCluster" })
		}},
		{
			infrav1.ClassNotFoundReason, `InfrastructureClass "nobody" does not exist`, []string{cluster, machine, pool},
			hookgateCluster(func(c *infrav1.HookgateCluster) { c.Spec.InfrastructureClassName = "nobody" }),
		},
		{infrav1.PausedReason, "spec.paused of the Cluster", []string{cluster, machine, pool}, func(m *memory) {
			alter(m, func(c *clusterv1.Cluster) { c.Spec.Paused = new(true) })
		}},
		{
			infrav1.NamespaceNotAllowedReason, "spec.allowedNamespaces", []string{cluster, machine, pool},
			class(func(c *infrav1.InfrastructureClass) {
				c.Spec.AllowedNamespaces = &infrav1.AllowedNamespaces{Names: []string{"other"}}
			}),
		},
		{
			infrav1.CredentialsNotFoundReason, "team/missing with the credentials does not exist: create it",
			[]string{cluster, machine}, class(func(c *infrav1.InfrastructureClass) { c.Spec.CredentialsRef.Name = "missing" }),
		},
		{
			infrav1.CredentialsNotFoundReason, "other/credentials: it must be in the namespace", []string{cluster, machine, pool},
			hookgateCluster(func(c *infrav1.HookgateCluster) {
				c.Spec.CredentialsRef = &infrav1.SecretReference{Namespace: "other", Name: "credentials"}
			}),
		},
		{
			infrav1.MissingHandlerReason, "has no handler for the hook", []string{cluster, machine, pool},
			class(func(c *infrav1.InfrastructureClass) { c.Status.Handlers = infrav1.Handlers{} }),
		},
		{
			infrav1.ClassNotReadyReason, "is not ready: see its conditions", []string{cluster, machine, pool},
			class(func(c *infrav1.InfrastructureClass) {
				set(c, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ClassNotReadyReason, "")
			}),
		},
		{
			infrav1.InvalidParametersReason, "spec.parameters.zone", []string{cluster, machine, pool},
			class(func(c *infrav1.InfrastructureClass) { c.Status.Schemas = needsZone }),
		},
	} {
		forSubjects(t, func(t *testing.T, m *memory) {
			if !slices.Contains(c.kinds, m.kind) {
				return
			}
			c.change(m)
			m.must(0)
			m.wantAsked(c.message)
			kind := infrav1.ReadyCondition
			if c.reason == infrav1.PausedReason {
				kind = infrav1.PausedCondition
			}
			if got := m.condition(kind); !strings.Contains(got, " "+c.reason+": ") || !strings.Contains(got, c.message) {
				t.Errorf("%s is %s, want %s: %s", kind, got, c.reason, c.message)
			}
			if o := m.stored(); len(o.GetFinalizers()) > 0 || *m.externalID(o) != "" {
				t.Errorf("%s: it is kept although nothing was made", c.message)
			}
		})
	}
}

// The provider ID of a pool is recorded when it is answered, and stays. Nothing is used of an answer with another one, or
// with one that belongs to another pool.
func TestProviderIDOfAPool(t *testing.T) {
	m := newMemory(t, subjects[2])
	other := &infrav1.HookgateMachinePool{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "team"}}
	other.Spec.ProviderID = "groups/other"
	m.create(other)
	for _, c := range []struct{ answer, recorded, synced string }{
		{"", "", "True"},
		{"groups/other", "", "False " + infrav1.DuplicateProviderIDReason},
		{"groups/x", "groups/x", "True"},
		{"groups/y", "groups/x", "False " + infrav1.ProviderIDConflictReason},
		{"", "groups/x", "True"},
	} {
		m.answer = func(_, out proto.Message) *gatewaytest.Answer {
			a := out.(*infrahooksv1alpha1.ReconcileMachinePoolResponse)
			if a.ProviderId = c.answer; c.synced != "True" {
				a.Instances = append(a.Instances, &infrahooksv1alpha1.Instance{Name: "j", ProviderId: "fake://j", Phase: ready})
				a.InstanceCount = new(int32(2))
			}
			return nil
		}
		m.must(time.Hour)
		p := m.stored().(*infrav1.HookgateMachinePool)
		if p.Spec.ProviderID != c.recorded || len(p.Spec.ProviderIDList) != 1 || *p.Status.Replicas != 1 ||
			!strings.HasPrefix(m.condition(infrav1.SyncedCondition), c.synced) {
			t.Errorf("after the answer %q, the pool is %+v; Synced is %s", c.answer, p.Spec, m.condition(infrav1.SyncedCondition))
		}
	}
}

// A list without any instance counts once it is acknowledged with the pool's own externalID.
func TestEmptyListIsAcknowledged(t *testing.T) {
	m := newMemory(t, subjects[2])
	m.made()
	m.answer = func(_, out proto.Message) *gatewaytest.Answer {
		a := out.(*infrahooksv1alpha1.ReconcileMachinePoolResponse)
		a.Instances, a.InstanceCount = nil, new(int32(0))
		return nil
	}
	own := *m.externalID(m.stored())
	for _, value := range []string{"", "another", own} {
		m.change(func(o object) {
			o.SetAnnotations(map[string]string{infrav1.AcceptEmptyAnnotation: value, infrav1.InstancesAnnotation: o.GetAnnotations()[infrav1.InstancesAnnotation]})
		})
		m.must(time.Hour)
		m.must(time.Hour)
		p := m.stored().(*infrav1.HookgateMachinePool)
		if left := len(p.Spec.ProviderIDList) == 0 && *p.Status.Replicas == 0; left != (value == own) || !*p.Status.Ready {
			t.Errorf("acknowledged with %q: %v %+v", value, p.Spec.ProviderIDList, p.Status)
		}
		if got := m.condition(infrav1.SyncedCondition); value != own && !strings.Contains(got, infrav1.EmptyListReason+": ") || !strings.HasSuffix(got, own) && value != own {
			t.Errorf("acknowledged with %q: Synced is %s", value, got)
		}
	}
}
