// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/infrastructure/internal/calls"
	"github.com/hookgate/hookgate/infrastructure/internal/gatewaytest"
	"github.com/hookgate/hookgate/infrastructure/parameters"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// objects is a client that has Secrets and HookgateMachines, and counts what is created.
type objects struct {
	client.Client
	secret   *corev1.Secret
	machines []infrav1.HookgateMachine
	created  int
	copied   bool // by a list
	patched  string
}

// statusOf is the status of the objects of a client.
type statusOf struct {
	client.SubResourceWriter
	of *objects
}

func (s statusOf) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	data, err := p.Data(o)
	s.of.patched += string(data)
	return err
}

func (o *objects) Status() client.SubResourceWriter { return statusOf{of: o} }

func (o *objects) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if s, ok := into.(*corev1.Secret); ok && o.secret != nil {
		o.secret.DeepCopyInto(s)
		return nil
	}
	return errors.New("not there")
}

func (o *objects) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	all := (&client.ListOptions{}).ApplyOptions(options)
	o.copied = all.UnsafeDisableDeepCopy == nil || !*all.UnsafeDisableDeepCopy
	if list, ok := into.(*infrav1.HookgateMachineList); ok {
		list.Items = o.machines
	}
	return nil
}

func (o *objects) Create(context.Context, client.Object, ...client.CreateOption) error {
	o.created++
	return nil
}

func TestCredentialsAreBounded(t *testing.T) {
	for size, want := range map[int]bool{limits.CredentialBytes: true, limits.CredentialBytes + 1: false} {
		secret := &corev1.Secret{Data: map[string][]byte{"key": bytes.Repeat([]byte("x"), size-len("key"))}}
		s := newSecrets(&objects{secret: secret}, nil, time.Now)
		values, b, err := s.credentials(t.Context(), &types.NamespacedName{Namespace: "team", Name: "cloud"})
		if err != nil || (b == nil) != want || (values != nil) != want {
			t.Errorf("%d bytes: %d values, %+v, %v", size, len(values), b, err)
		}
		if b != nil && (b.reason != infrav1.CredentialsNotFoundReason || !strings.Contains(b.message, "team/cloud") || strings.Contains(b.message, "xxx")) {
			t.Errorf("%d bytes: %s %s", size, b.reason, b.message)
		}
	}
}

// TestSizeOfAPoolIsReadAgain checks that a pool whose size is a mistake does not keep its controller for hours.
func TestSizeOfAPoolIsReadAgain(t *testing.T) {
	o := &objects{}
	r := &pools{base: &base{client: o}}
	w := &scope{machinePool: &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}}
	err := r.carryOut(t.Context(), &infrav1.HookgateMachinePool{}, w, nil, todo{create: 1_000_000}, "r")
	if err != nil || o.created != maxCreated {
		t.Errorf("created %d, %v", o.created, err)
	}
}

// TestDuplicatesAreNotCopied checks that each of many objects with one externalID, which a tenant may write, does not
// copy all of them to find the first.
func TestDuplicatesAreNotCopied(t *testing.T) {
	o := &objects{}
	for i := range 3 {
		m := infrav1.HookgateMachine{ObjectMeta: metav1.ObjectMeta{Name: strconv.Itoa(i), CreationTimestamp: metav1.Unix(int64(10-i), 0)}}
		o.machines = append(o.machines, m)
	}
	r := &base{client: o}
	b, err := r.duplicate(t.Context(), &o.machines[0], "id", &infrav1.HookgateMachineList{})
	if err != nil || b == nil || !strings.Contains(b.message, "belongs to HookgateMachine /2: delete HookgateMachine /0, and") || o.copied {
		t.Errorf("got %+v, %v, copied %t", b, err, o.copied)
	}
	if b, err := r.duplicate(t.Context(), &o.machines[2], "id", &infrav1.HookgateMachineList{}); b != nil || err != nil {
		t.Errorf("the first: %+v, %v", b, err)
	}
}

// TestNothingIsDeletedFromANamespaceThatIsNotAllowed checks that an object whose writer has chosen its externalID, in a
// namespace that may not use the class, does not make the extension delete something with the credentials of the class.
func TestNothingIsDeletedFromANamespaceThatIsNotAllowed(t *testing.T) {
	for name, tt := range map[string]struct{ allowed, made, called bool }{
		"Foreign": {false, false, false}, "MadeBefore": {false, true, true}, "Allowed": {true, false, true},
	} {
		var called int
		away := func(context.Context, *catalog.Hook, string, proto.Message) *gatewaytest.Answer {
			called++
			return &gatewaytest.Answer{NoAnswer: hook.Errorf(hook.Unreachable, "away")}
		}
		client, err := calls.New(calls.Config{Gateway: gatewaytest.Gateway(away)})
		if err != nil {
			t.Fatal(err)
		}
		o := &objects{}
		b := &base{
			client: o, live: o, calls: client, secrets: newSecrets(o, nil, time.Now), schemas: parameters.NewCache(), now: time.Now,
			events: newRecorder(&events.FakeRecorder{}, time.Now),
		}
		class := &infrav1.InfrastructureClass{}
		class.Status.Handlers = infrav1.Handlers{DeleteCluster: "c", DeleteMachine: "m", DeleteMachinePool: "p"}
		w := &scope{class: class, className: "rack", namespaceAllowed: tt.allowed}
		made := infrav1.Initialization{Provisioned: &tt.made}
		meta := metav1.ObjectMeta{Name: "x", Namespace: "other", ResourceVersion: "1"}
		c := &infrav1.HookgateCluster{ObjectMeta: *meta.DeepCopy()}
		c.Finalizers, c.Spec.ExternalID, c.Status.Initialization = []string{infrav1.ClusterFinalizer}, "not-mine", made
		m := &infrav1.HookgateMachine{ObjectMeta: *meta.DeepCopy()}
		m.Finalizers, m.Spec.ExternalID, m.Status.Initialization = []string{infrav1.MachineFinalizer}, "not-mine", made
		p := &infrav1.HookgateMachinePool{ObjectMeta: *meta.DeepCopy()}
		p.Spec.ExternalID, p.Status.Initialization = "not-mine", made
		for kind, del := range map[string]func() error{
			"cluster": func() error {
				_, err := (&clusters{base: b, pace: newScheduler(b.now)}).delete(t.Context(), c, c.DeepCopy(), w)
				return err
			},
			"machine": func() error {
				_, err := (&machines{base: b, pace: newScheduler(b.now)}).delete(t.Context(), m, m.DeepCopy(), w)
				return err
			},
			"pool": func() error {
				_, err := (&pools{base: b, pace: newScheduler(b.now)}).deleteGroup(t.Context(), p, p.DeepCopy(), w, nil)
				return err
			},
		} {
			called, o.patched = 0, ""
			if err := del(); err != nil {
				t.Errorf("%s, %s: %v", name, kind, err)
			}
			if (called == 1) != tt.called || strings.Contains(o.patched, infrav1.NamespaceNotAllowedReason) == tt.called {
				t.Errorf("%s, %s: %d calls, status %s", name, kind, called, o.patched)
			}
		}
	}
}
