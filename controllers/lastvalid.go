// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/kinds"
)

const (
	// lastValidLabel is on each record, with the kind of the object that it is of.
	lastValidLabel = "hookgate.dev/last-valid"
	// lastValidRole is the Role in deploy/ with the permissions for records.
	lastValidRole = "hookgate-last-valid"

	revisionKind = "ControllerRevision"
)

// lastValid has the last valid spec of each object of Hookgate's own, which stays in effect while the object has a
// mistake: in this process, in one that starts later, and in the other replicas. A record is a ControllerRevision in
// the namespace of the gateway, whose revision is the generation of the object. It is not in the object itself: whoever
// may change that may not change what was valid before, and "kubectl replace" would drop it.
//
// Every replica reads the records and notes what has none yet; the leader writes. What counts is the highest revision
// with the UID of the object, so that a record of an object that was deleted counts for none. The garbage collector
// deletes it, because it has the object as its owner.
//
// It is safe for concurrent use.
type lastValid struct {
	namespace string
	cache     cache.Cache
	client    client.Client // to write with
	term      func() context.Context
	logger    *slog.Logger
	readOnly  bool
	changed   func() // called when another record counts for an object that is mistaken, or one was deleted
	due       *notify.Signal

	isSynced func() bool // all records have been seen
	missing  chan struct{}
	once     sync.Once

	mu       sync.Mutex
	records  map[recordKey][]*appsv1.ControllerRevision // in the order of revisions
	mistaken map[string]map[types.UID]bool              // by kind: the objects that a record is in effect for, or none yet
	pending  map[string]map[types.UID]pendingRecord     // by kind: what is to be written
}

var _ followed = (*lastValid)(nil)

// recordKey identifies the object that a record is of.
type recordKey struct {
	kind string
	uid  types.UID
}

// pendingRecord is a record to be written, in place of another one of the same generation if replaces is not empty.
type pendingRecord struct {
	*appsv1.ControllerRevision

	replaces types.UID
}

func newLastValid(namespace string, shared *own) *lastValid {
	return &lastValid{
		namespace: namespace, cache: shared.cache, client: shared.client, term: shared.leadership.term,
		logger: shared.logger, readOnly: shared.readOnly, changed: shared.changed.Notify, due: notify.NewSignal(),
		missing: make(chan struct{}), records: map[recordKey][]*appsv1.ControllerRevision{},
		mistaken: map[string]map[types.UID]bool{}, pending: map[string]map[types.UID]pendingRecord{},
	}
}

// lastValidIn returns how a cache keeps the records of a namespace.
func lastValidIn(namespace string) cache.ByObject {
	exists, err := labels.Parse(lastValidLabel)
	if err != nil {
		panic(err) // the label is a constant
	}
	return cache.ByObject{
		Label: exists, Namespaces: map[string]cache.Config{namespace: {}}, Transform: keepRecord,
	}
}

// keepRecord removes from a record what nothing reads.
func keepRecord(object any) (any, error) {
	if r, ok := object.(*appsv1.ControllerRevision); ok {
		r.ManagedFields, r.Annotations = nil, nil
	}
	return object, nil
}

// keyOf returns the object that a record is of, or false for a ControllerRevision that is no record.
func keyOf(r *appsv1.ControllerRevision) (recordKey, bool) {
	kind := r.Labels[lastValidLabel]
	if len(r.OwnerReferences) != 1 {
		return recordKey{}, false
	}
	owner := r.OwnerReferences[0]
	if !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") || owner.Kind != kind {
		return recordKey{}, false
	}
	return recordKey{kind, owner.UID}, true
}

func (*lastValid) isKind(name string) bool                  { return name == revisionKind }
func (v *lastValid) setAbsent()                             { v.once.Do(func() { close(v.missing) }) }
func (v *lastValid) absent() <-chan struct{}                { return v.missing }
func (v *lastValid) synced() bool                           { return v.isSynced() }
func (*lastValid) apply(context.Context) (changed []string) { return nil }
func (*lastValid) judge() map[string]kinds.Verdict          { return nil }

func (*lastValid) write(context.Context, map[string]kinds.Verdict) (refused bool) {
	return false
}

// follow implements followed. Most records change nothing that is in effect, so that it does not use the handler.
func (v *lastValid) follow(ctx context.Context, _ toolscache.ResourceEventHandler) error {
	informer, err := v.cache.GetInformer(ctx, &appsv1.ControllerRevision{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %ss: %w", revisionKind, err)
	}
	set := func(object any) {
		if r, ok := object.(*appsv1.ControllerRevision); ok {
			v.set(r)
		}
	}
	remove := func(object any) {
		if unknown, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if r, ok := object.(*appsv1.ControllerRevision); ok {
			v.remove(r)
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, DeleteFunc: remove,
		// Only metadata can change, but that has what a record is of.
		UpdateFunc: func(before, object any) { remove(before); set(object) },
	})
	if err != nil {
		return fmt.Errorf("watch %ss: %w", revisionKind, err)
	}
	v.isSynced = registration.HasSynced
	return nil
}

// set adds or replaces a record.
func (v *lastValid) set(r *appsv1.ControllerRevision) {
	key, ok := keyOf(r)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	all := slices.DeleteFunc(v.records[key], func(other *appsv1.ControllerRevision) bool { return other.Name == r.Name })
	all = append(all, r)
	slices.SortFunc(all, func(a, b *appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	v.records[key] = all
	if p, ok := v.pending[key.kind][key.uid]; ok && p.isMetBy(r) {
		delete(v.pending[key.kind], key.uid)
	}
	if v.mistaken[key.kind][key.uid] {
		v.changed()
	}
	if len(all) > 1 {
		v.due.Notify()
	}
}

// remove removes a record that was deleted. If it counted, it may have to be written again.
func (v *lastValid) remove(r *appsv1.ControllerRevision) {
	key, ok := keyOf(r)
	if !ok {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.records[key]
	i := slices.IndexFunc(all, func(other *appsv1.ControllerRevision) bool { return other.UID == r.UID })
	if i < 0 {
		return
	}
	if i == len(all)-1 {
		v.changed()
	}
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(v.records, key)
		return
	}
	v.records[key] = all
}

// last returns the record that counts for an object, or nil without one.
func (v *lastValid) last(key recordKey) *appsv1.ControllerRevision {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.lastOf(key)
}

// lastOf is last for a caller that holds the lock.
func (v *lastValid) lastOf(key recordKey) *appsv1.ControllerRevision {
	if all := v.records[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

// ofMistaken is last for an object that is mistaken. changed is called when the result changes.
func (v *lastValid) ofMistaken(key recordKey) *appsv1.ControllerRevision {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.mistaken[key.kind] == nil {
		v.mistaken[key.kind] = map[types.UID]bool{}
	}
	v.mistaken[key.kind][key.uid] = true
	return v.lastOf(key)
}

// versionOf returns what tells a record from all others and from what it was before, and is empty without one.
func versionOf(r *appsv1.ControllerRevision) string {
	if r == nil {
		return ""
	}
	return string(r.UID) + "/" + r.ResourceVersion
}

// isMetBy reports whether a record makes it needless to write p.
func (p pendingRecord) isMetBy(r *appsv1.ControllerRevision) bool {
	return r.Revision > p.Revision || r.Revision == p.Revision && r.UID != p.replaces
}
