// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds"
)

// recorded is the data of a record.
type recorded struct {
	Spec any `json:"spec"`
}

// newRecord returns the record of an object, or an error if its spec is too large for one.
func newRecord(namespace, kind string, o kinds.Object) (*appsv1.ControllerRevision, error) {
	data, err := json.Marshal(recorded{kinds.SpecOf(o)})
	if err == nil && len(data) > limits.LastValidBytes {
		err = fmt.Errorf("the spec has %d bytes, more than %d", len(data), limits.LastValidBytes)
	}
	if err != nil {
		return nil, err
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      fmt.Sprintf("%s-%s-%d", strings.ToLower(kind), o.GetUID(), o.GetGeneration()),
			Labels:    map[string]string{lastValidLabel: kind},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Name: o.GetName(), UID: o.GetUID(),
			}},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: o.GetGeneration(),
	}, nil
}

// withRecorded returns a copy of an object with the spec in a record, or an error if that has members that this version
// of the gateway does not know: what is not understood must not be taken for what it says besides.
func withRecorded(o kinds.Object, r *appsv1.ControllerRevision) (kinds.Object, error) {
	earlier := o.DeepCopyObject().(kinds.Object)
	spec := kinds.SpecOf(earlier)
	reflect.ValueOf(spec).Elem().SetZero()
	unknown, err := kubejson.UnmarshalStrict(r.Data.Raw, &recorded{spec})
	return earlier, errors.Join(append(unknown, err)...)
}

// restore returns the recorded spec of an object whose present spec has a mistake, if the recorded one compiles.
func (f *follower) restore(item kinds.Object, r *appsv1.ControllerRevision) (any, bool) {
	earlier, err := withRecorded(item, r)
	if err == nil {
		c, errs := f.Compile(earlier)
		if len(errs) == 0 {
			return c, true
		}
		err = errs.ToAggregate()
	}
	f.logger.Warn("object has a mistake, and this version of the gateway rejects the spec that was last recorded as valid",
		"kind", f.Name, "name", item.GetName(), "record", r.Name, "error", err)
	return nil, false
}

// keep tells the records which objects are mistaken, and which valid ones have yet to be recorded. That is noted by
// each replica, so that none is left out when another one begins to lead.
func (f *follower) keep() {
	if f.records == nil || !f.records.synced() {
		return
	}
	leads := f.records.term() != nil
	mistaken, pending := map[types.UID]bool{}, map[types.UID]pendingRecord{}
	for _, item := range f.items {
		uid, known := item.GetUID(), f.compiled[item.GetName()]
		if known.invalid != "" {
			mistaken[uid] = true
		}
		p, waits := f.records.pendingOf(recordKey{f.Name, uid})
		if known.invalid == "" && !known.unrecordable && (!waits || p.Revision < item.GetGeneration()) {
			p, waits = f.unrecorded(item, &known, leads)
			f.compiled[item.GetName()] = known
		}
		if waits && !f.records.readOnly {
			pending[uid] = p
		}
	}
	f.records.await(f.Name, mistaken, pending)
}

// unrecorded returns what is to be recorded of a valid object, if anything is. A leader looks once whether the record
// of the same generation has all that this version of the gateway knows: another version may have written it.
func (f *follower) unrecorded(item kinds.Object, known *compiled, leads bool) (p pendingRecord, waits bool) {
	last := f.records.last(recordKey{f.Name, item.GetUID()})
	of := item.GetGeneration()
	if last != nil && (last.Revision > of || last.Revision == of && (known.checked || !leads)) {
		return p, false
	}
	record, err := newRecord(f.records.namespace, f.Name, item)
	if err != nil {
		known.unrecordable = true
		f.logger.Warn("last valid spec cannot be recorded; if a later spec has a mistake, the last valid spec stays in "+
			"effect only until a restart", "kind", f.Name, "name", item.GetName(), "error", err)
		return p, false
	}
	p.ControllerRevision = record
	if last != nil && last.Revision == of {
		known.checked = true
		p.replaces = last.UID
		earlier, err := withRecorded(item, last)
		if err != nil {
			return p, true
		}
		data, err := json.Marshal(recorded{kinds.SpecOf(earlier)})
		return p, err != nil || !bytes.Equal(data, record.Data.Raw)
	}
	return p, true
}
