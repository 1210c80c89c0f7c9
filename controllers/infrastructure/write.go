// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"context"
	"encoding/json"
	"fmt"

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
	}
	if status == nil {
		return nil
	}
	if err := r.client.Status().Patch(ctx, written, client.RawPatch(types.MergePatchType, status)); err != nil {
		return fmt.Errorf("write the status of %s: %w", client.ObjectKeyFromObject(after), err)
	}
	return nil
}
