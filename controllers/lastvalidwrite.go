// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/sources/discovery"
)

// pendingOf returns what is to be written for an object.
func (v *lastValid) pendingOf(key recordKey) (pendingRecord, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.pending[key.kind][key.uid]
	return p, ok
}

// await replaces what is known of the objects of a kind: which are mistaken, and what is to be written for them.
func (v *lastValid) await(kind string, mistaken map[types.UID]bool, pending map[types.UID]pendingRecord) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for uid, p := range pending { // a record may have come meanwhile
		if last := v.lastOf(recordKey{kind, uid}); last != nil && p.isMetBy(last) {
			delete(pending, uid)
		}
	}
	v.mistaken[kind], v.pending[kind] = mistaken, pending
	v.due.Notify() // also for what an earlier leader has not deleted
}

// run writes what is pending, and deletes what newer records have replaced, whenever this replica leads, until ctx is
// done.
func (v *lastValid) run(ctx context.Context) {
	if v == nil {
		return
	}
	pace := rate.NewLimiter(limits.LastValidPerSecond, 1)
	delays := discovery.DefaultBackoff().Delays()
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.due.C():
		case <-again:
		}
		again = nil
		if err := v.writeAll(ctx, pace); err != nil {
			v.logger.Error("last valid specs cannot be recorded; trying again: after a restart, the gateway would "+
				"refuse every call that an object with a mistake may apply to", "namespace", v.namespace, "error", err,
				"advice", "check that the Role "+lastValidRole+" is bound to the gateway's service account")
			again = time.After(delays.Next())
			continue
		}
		delays.Reset()
	}
}

// writeAll writes and deletes records if this replica leads, and returns the first error.
func (v *lastValid) writeAll(ctx context.Context, pace *rate.Limiter) (first error) {
	term := v.term()
	if term == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(term, cancel)()
	pending, replaced := v.work()
	for _, key := range pending {
		p, ok := v.pendingOf(key) // which may be another one by now
		if !ok {
			continue
		}
		if pace.Wait(ctx) != nil {
			return nil
		}
		first = cmp.Or(first, v.put(ctx, key, p))
	}
	for _, r := range replaced {
		if pace.Wait(ctx) != nil {
			return nil
		}
		first = cmp.Or(first, v.delete(ctx, r.Name, r.UID))
	}
	if ctx.Err() != nil {
		return nil // this replica no longer leads, or stops
	}
	return first
}

// work returns the objects whose spec is to be recorded, and the records that newer ones have replaced, in order.
func (v *lastValid) work() (pending []recordKey, replaced []*appsv1.ControllerRevision) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for kind, all := range v.pending {
		for uid := range all {
			pending = append(pending, recordKey{kind, uid})
		}
	}
	for _, all := range v.records {
		replaced = append(replaced, all[:len(all)-1]...)
	}
	slices.SortFunc(pending, func(a, b recordKey) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.uid, b.uid))
	})
	slices.SortFunc(replaced, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Name, b.Name) })
	return pending, replaced
}

// put writes a record. The API server lets none be changed.
func (v *lastValid) put(ctx context.Context, key recordKey, p pendingRecord) error {
	if p.replaces != "" {
		if err := v.delete(ctx, p.Name, p.replaces); err != nil {
			return err
		}
	}
	written := p.DeepCopy()
	err := v.client.Create(ctx, written)
	switch {
	case apierrors.IsAlreadyExists(err): // the watch brings it
		v.mu.Lock()
		if v.pending[key.kind][key.uid].ControllerRevision == p.ControllerRevision {
			delete(v.pending[key.kind], key.uid)
		}
		v.mu.Unlock()
		return nil
	case err != nil:
		return fmt.Errorf("create %s of %s %q: %w", revisionKind, key.kind, p.OwnerReferences[0].Name, err)
	}
	_, _ = keepRecord(written) // it cannot fail
	v.set(written)
	return nil
}

// delete deletes a record, unless there is another one of its name.
func (v *lastValid) delete(ctx context.Context, name string, uid types.UID) error {
	r := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: name}}
	err := v.client.Delete(ctx, r, client.Preconditions{UID: &uid})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("delete %s %q: %w", revisionKind, name, err)
}
