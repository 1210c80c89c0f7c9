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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/hookgate/hookgate/api/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/limits"
)

// objects is a client that has Secrets and HookgateMachines, and counts what is created.
type objects struct {
	client.Client
	secret   *corev1.Secret
	machines []infrav1.HookgateMachine
	created  int
	copied   bool // by a list
}

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
	into.(*infrav1.HookgateMachineList).Items = o.machines
	return nil
}

func (o *objects) Create(context.Context, client.Object, ...client.CreateOption) error {
	o.created++
	return nil
}

func TestCredentialsAreBounded(t *testing.T) {
	for size, want := range map[int]bool{limits.CredentialBytes: true, limits.CredentialBytes + 1: false} {
		secret := &corev1.Secret{Data: map[string][]byte{"key": bytes.Repeat([]byte("x"), size-len("key"))}}
		s := newSecrets(&objects{secret: secret}, time.Now)
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
	w := &world{machinePool: &clusterv1.MachinePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}}
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
	if err != nil || b == nil || !strings.Contains(b.message, "belongs to HookgateMachine /2:") || o.copied {
		t.Errorf("got %+v, %v, copied %t", b, err, o.copied)
	}
	if b, err := r.duplicate(t.Context(), &o.machines[2], "id", &infrav1.HookgateMachineList{}); b != nil || err != nil {
		t.Errorf("the first: %+v, %v", b, err)
	}
}
