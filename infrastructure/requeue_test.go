// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An object that is not ready is looked at again exactly when the event is due that says so.
func TestNotReadyForLongIsNotLate(t *testing.T) {
	now := time.Now()
	failure := errors.New("the API server is down")
	for _, c := range []struct {
		reason, conditions string
		age                time.Duration
		next, want         time.Duration // of the reconciliation itself, and of all
		err                error
	}{
		{"waits for an event", "Ready=False:WaitingForOwner", time.Minute, 0, 14 * time.Minute, nil},
		{"asked again much later", "Ready=False:InstanceGone", 10 * time.Minute, time.Hour, 5 * time.Minute, nil},
		{"asked again before", "Ready=False:Provisioning", time.Minute, 10 * time.Second, 10 * time.Second, nil},
		{"a moment before", "Ready=False:Scaling", notReadyAfter - time.Millisecond, time.Minute, time.Millisecond, nil},
		{"at that moment", "Ready=False:Scaling", notReadyAfter, time.Minute, time.Minute, nil},
		{"long ago", "Ready=False:Scaling", time.Hour, 0, 0, nil},
		{"ready", "Ready=True:Ready", time.Minute, 0, 0, nil},
		{"paused", "Ready=False:Scaling Paused=True:Paused", time.Minute, 0, 0, nil},
		{"nothing known", "", time.Minute, 0, 0, nil},
		{"an error, which is tried again", "Ready=False:Scaling", time.Minute, 0, 0, failure},
	} {
		p := requeuer{
			Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return reconcile.Result{RequeueAfter: c.next}, c.err
			}),
			read: func(context.Context, reconcile.Request) (object, error) {
				return machineSaying(now, c.age, strings.Fields(c.conditions)...), nil
			},
			now: func() time.Time { return now },
		}
		got, err := p.Reconcile(t.Context(), reconcile.Request{})
		if got.RequeueAfter != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: again after %s, %v; want %s, %v", c.reason, got.RequeueAfter, err, c.want, c.err)
		}
		// At that time, the event is due.
		m := machineSaying(now, c.age, strings.Fields(c.conditions)...)
		if d := untilNotice(m, now); d > 0 {
			if early := notices(m, m, now.Add(d-time.Nanosecond)); len(early) != 0 {
				t.Errorf("%s: a moment too early there is %v", c.reason, early)
			}
			if due := notices(m, m, now.Add(d)); len(due) != 1 || due[0].reason != notReadyEvent {
				t.Errorf("%s: when it is due there is %v", c.reason, due)
			}
		}
	}
	gone := requeuer{
		Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}),
		read: func(context.Context, reconcile.Request) (object, error) { return nil, nil },
		now:  time.Now,
	}
	if got, err := gone.Reconcile(t.Context(), reconcile.Request{}); got.RequeueAfter != 0 || err != nil {
		t.Errorf("an object that is gone: %v, %v", got, err)
	}
}

// A conflict is no error: another writer was faster, and the object is looked at again soon.
func TestConflictsAreNoErrors(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "hookgatemachines"}, "m", errors.New("modified"))
	other := errors.New("the API server is down")
	for _, c := range []struct {
		reason    string
		err, want error
		again     bool
	}{
		{"a conflict", fmt.Errorf("write default/m: %w", conflict), nil, true},
		{"another error", other, other, false},
		{"none", nil, nil, false},
	} {
		q := quiet{reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			return reconcile.Result{}, c.err
		})}
		got, err := q.Reconcile(t.Context(), reconcile.Request{})
		if !errors.Is(err, c.want) || got.RequeueAfter > 0 != c.again || got.RequeueAfter > 2*conflictDelay {
			t.Errorf("%s: again after %s, %v", c.reason, got.RequeueAfter, err)
		}
	}
}
