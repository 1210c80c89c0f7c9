// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// difference returns the merge patches that lead from one object to another: of everything but the status, with a lock
// on the resource version, and of the status. A patch is nil if there is nothing to write.
func difference(before, after client.Object) (main, status []byte, err error) {
	data, err := client.MergeFrom(before).Data(after)
	if err != nil {
		return nil, nil, fmt.Errorf("compare %T: %w", after, err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, nil, fmt.Errorf("compare %T: %w", after, err)
	}
	if part, ok := members["status"]; ok {
		status = append(append([]byte(`{"status":`), part...), '}')
		delete(members, "status")
	}
	if len(members) == 0 {
		return nil, status, nil
	}
	metadata := map[string]any{}
	if part, ok := members["metadata"]; ok {
		if err := json.Unmarshal(part, &metadata); err != nil {
			return nil, nil, fmt.Errorf("compare %T: %w", after, err)
		}
	}
	metadata["resourceVersion"] = before.GetResourceVersion()
	if members["metadata"], err = json.Marshal(metadata); err != nil {
		return nil, nil, fmt.Errorf("compare %T: %w", after, err)
	}
	main, err = json.Marshal(members)
	return main, status, err
}

// write writes the difference between two states of an object: the status last, so that it never claims what the spec
// does not have.
func (r *base) write(ctx context.Context, before, after client.Object) error {
	main, status, err := difference(before, after)
	if err != nil {
		return err
	}
	written, _ := after.DeepCopyObject().(client.Object) // the answers of the API server overwrite it
	if main != nil {
		if err := r.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, main)); err != nil {
			return fmt.Errorf("write %s: %w", client.ObjectKeyFromObject(after), err)
		}
		if o, ok := after.(object); ok && written.GetGeneration() != before.GetGeneration() {
			observed(o, written.GetGeneration())
			if _, status, err = difference(before, after); err != nil {
				return err
			}
		}
	}
	if status != nil {
		if status, err = locked(written, status); err != nil {
			return err
		}
		if err := r.client.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, status)); err != nil {
			return fmt.Errorf("write the status of %s: %w", client.ObjectKeyFromObject(after), err)
		}
	}
	if main != nil || status != nil {
		r.await(ctx, written)
	}
	was, ok := before.(object)
	if is, isOne := after.(object); ok && isOne {
		for _, n := range notices(was, is, r.now()) {
			r.events.record(after, n)
		}
	}
	return nil
}

// locked returns the patch of a status with a lock on the resource version of the object as it was written last. What
// was decided from an older state must not take back what was written since.
func locked(written client.Object, status []byte) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(status, &members); err != nil {
		return nil, fmt.Errorf("compare %T: %w", written, err)
	}
	lock, err := json.Marshal(map[string]string{"resourceVersion": written.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("compare %T: %w", written, err)
	}
	members["metadata"] = lock
	return json.Marshal(members)
}

// record writes what a call has changed. If that fails, the answer is lost, and the next call is due at once.
func (r *base) record(ctx context.Context, p *scheduler, before, after client.Object) error {
	err := r.write(ctx, before, after)
	if err != nil {
		p.forget(client.ObjectKeyFromObject(before))
	}
	return err
}

const (
	// cacheDelay is the time between two reads of a cache that lacks the last write.
	cacheDelay = 5 * time.Millisecond
	// cacheTimeout bounds the wait for the cache. What is decided from an older state is refused, and decided again.
	cacheTimeout = 5 * time.Second
)

// await waits until the cache has an object as it was written, so that the next reconciliation does not take its own
// work for the work of others.
func (r *base) await(ctx context.Context, written client.Object) {
	want, err := strconv.ParseUint(written.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	read, ok := written.DeepCopyObject().(client.Object)
	for deadline := time.Now().Add(cacheTimeout); ok && time.Now().Before(deadline) && ctx.Err() == nil; {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(written), read); err != nil {
			return
		}
		if have, err := strconv.ParseUint(read.GetResourceVersion(), 10, 64); err != nil || have >= want {
			return
		}
		time.Sleep(cacheDelay)
	}
}

// observed makes conditions about the spec of an object those about the spec that these controllers have just written.
func observed(o object, generation int64) {
	list := slices.Clone(o.GetConditions())
	for i := range list {
		if list[i].ObservedGeneration == o.GetGeneration() {
			list[i].ObservedGeneration = generation
		}
	}
	o.SetConditions(list)
}

// continued returns a copy of an object, as it is stored now, with the conditions that desired has so far.
func continued[T object](stored, desired T) T {
	o, ok := stored.DeepCopyObject().(T)
	if !ok {
		return desired
	}
	observed(desired, stored.GetGeneration())
	o.SetConditions(desired.GetConditions())
	return o
}
