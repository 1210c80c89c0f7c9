// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"context"
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Forget forgets the successes of a HookJob for a Cluster, namespace/name, and returns how many there were. A Job that
// is still there is not touched, and answers for itself.
func (c *Cluster) Forget(ctx context.Context, hookJob, cluster string) (n int, err error) {
	err = c.change(ctx, hookJob, nil, func(all map[string]*success) (bool, error) {
		n = len(all)
		maps.DeleteFunc(all, func(_ string, s *success) bool { return s.Cluster == cluster })
		n -= len(all)
		return n > 0, nil
	})
	if err != nil {
		return n, err
	}
	moved, err := c.forgetMoved(ctx, hookJob, cluster)
	return max(n, moved), err
}

// Rerun deletes the Jobs of a HookJob for a Cluster that have ended, and forgets their successes, so that they run
// again when their hooks are called again. It returns the Jobs that it deleted, and those that have not ended, which it
// leaves alone, as namespace/name, and how many successes it forgot.
func (c *Cluster) Rerun(ctx context.Context, hookJob, cluster string) (deleted, left []string, n int, err error) {
	var list batchv1.JobList
	if err := c.Jobs.List(ctx, &list, client.MatchingLabels{HookJobLabel: hookJob}); err != nil {
		return nil, nil, 0, fmt.Errorf("list Jobs: %w", err)
	}
	for i := range list.Items {
		job := &list.Items[i]
		name := job.Namespace + "/" + job.Name
		// What has ended a moment ago may be recorded after its success was forgotten.
		_, settled := job.Annotations[messageAnnotation]
		switch {
		case job.Annotations[clusterAnnotation] != cluster:
		case !settled:
			left = append(left, name)
		default:
			if err := c.delete(ctx, job); err != nil {
				return nil, nil, 0, fmt.Errorf("delete Job %s: %w", name, err)
			}
			deleted = append(deleted, name)
		}
	}
	slices.Sort(deleted)
	slices.Sort(left)
	n, err = c.Forget(ctx, hookJob, cluster)
	return deleted, left, n, err
}
