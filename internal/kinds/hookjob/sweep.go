// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The times between two looks at Pods, two sweeps, and two prunings.
const (
	lookInterval  = 2 * time.Second
	sweepInterval = 10 * time.Second
	pruneInterval = 10 * time.Minute
)

// Run looks, sweeps and prunes until ctx is done, while leads reports that this replica leads. What fails is logged,
// once for each reason, and tried again.
func (c *Cluster) Run(ctx context.Context, leads func() bool) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	var swept, pruned time.Time
	logged := ""
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if !leads() {
			continue
		}
		err := c.Look(ctx)
		if time.Since(swept) >= sweepInterval {
			swept = time.Now()
			err = errors.Join(err, c.Sweep(ctx))
		}
		if time.Since(pruned) > pruneInterval {
			pruned = time.Now()
			err = errors.Join(err, c.Prune(ctx))
		}
		switch {
		case err == nil || ctx.Err() != nil:
			logged = ""
		case err.Error() != logged:
			logged = err.Error()
			c.Logger.Warn("Jobs of HookJobs cannot be cleaned up; trying again", "error", err)
		}
	}
}

// Sweep notes what became of Jobs that no call asks about any more, such as those of hooks that do not wait, and
// deletes the Jobs of updates of Machines that are over. It lets clusterctl move Clusters whose Jobs have ended.
func (c *Cluster) Sweep(ctx context.Context) error {
	var list batchv1.JobList
	if err := c.Jobs.List(ctx, &list, client.HasLabels{HookJobLabel}); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	var errs []error
	for i := range list.Items {
		job := &list.Items[i]
		_, settled := job.Annotations[messageAnnotation]
		ended, _ := hasEnded(job)
		var err error
		switch uid := job.Labels[machineLabel]; {
		case ended && !settled:
			_, err = c.settle(ctx, job)
		case uid != "" && job.DeletionTimestamp == nil:
			err = c.endUpdate(ctx, job, ended)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("job %s/%s: %w", job.Namespace, job.Name, err))
		}
	}
	return errors.Join(append(errs, c.unblock(ctx, list.Items))...)
}

// endUpdate deletes the Job and the record of an update of a Machine that is over, or of a Machine that is gone.
func (c *Cluster) endUpdate(ctx context.Context, job *batchv1.Job, ended bool) error {
	uid := job.Labels[machineLabel]
	exists, updating, err := c.updating(ctx, job.Annotations[machineAnnotation], uid)
	if err != nil || exists && (updating || !ended || untilGone(job)) {
		return err
	}
	key := keyOf(job)
	err = c.forget(ctx, job.Labels[HookJobLabel], func(k string, s *success) bool { return k == key && s.UID == uid })
	if err != nil {
		return err
	}
	return c.delete(ctx, job)
}

// updating reports whether a Machine still exists, and whether Cluster API updates it in place.
func (c *Cluster) updating(ctx context.Context, machine, uid string) (exists, updating bool, err error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(MachineKind)
	namespace, name, _ := strings.Cut(machine, "/")
	err = c.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)
	if apierrors.IsNotFound(err) {
		return false, false, nil
	}
	_, updating = m.Annotations[clusterv1.UpdateInProgressAnnotation]
	return string(m.UID) == uid, updating, err
}

// Prune removes what was recorded of Clusters that are gone, and of updates of Machines that are over, and the Jobs of
// such Clusters that have ended.
func (c *Cluster) Prune(ctx context.Context) error {
	var records corev1.ConfigMapList
	if err := c.API.List(ctx, &records, client.InNamespace(c.Namespace), client.HasLabels{HookJobLabel}); err != nil {
		return fmt.Errorf("list records: %w", err)
	}
	var jobs batchv1.JobList
	if err := c.Jobs.List(ctx, &jobs, client.HasLabels{HookJobLabel}); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	if len(records.Items)+len(jobs.Items) == 0 {
		return nil
	}
	clusters, err := c.clusters(ctx)
	if err != nil {
		return fmt.Errorf("list Clusters: %w", err)
	}
	gone := func(cluster, uid string) bool {
		found, exists := clusters[cluster]
		return !exists || uid != "" && string(found) != uid
	}
	var errs []error
	for i := range records.Items {
		errs = append(errs, c.pruneRecord(ctx, &records.Items[i], gone))
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		_, settled := job.Annotations[messageAnnotation]
		if _, succeeded := hasEnded(job); isAfterDelete(job) && succeeded {
			continue // until its time is over
		}
		if settled && gone(job.Annotations[clusterAnnotation], job.Annotations[clusterUIDAnnotation]) {
			errs = append(errs, c.delete(ctx, job))
		}
	}
	return errors.Join(errs...)
}

// pruneRecord removes what need not be recorded any more.
func (c *Cluster) pruneRecord(
	ctx context.Context, record *corev1.ConfigMap, gone func(cluster, uid string) bool,
) error {
	over := map[string]success{}
	for key, text := range record.Data {
		var s success
		switch err := json.Unmarshal([]byte(text), &s); {
		case err != nil:
		case s.Machine != "":
			if exists, updating, err := c.updating(ctx, s.Machine, s.UID); err != nil {
				return err
			} else if !exists || !updating && !s.UntilGone {
				over[key] = s
			}
		case gone(s.Cluster, s.UID) && !s.isKept():
			over[key] = s
		}
	}
	if len(over) == 0 {
		return nil
	}
	return c.forget(ctx, record.Labels[HookJobLabel], func(key string, s *success) bool { return over[key] == *s })
}

// clusters returns the UIDs of all Clusters, by namespace/name.
func (c *Cluster) clusters(ctx context.Context) (map[string]types.UID, error) {
	all := map[string]types.UID{}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("ClusterList"))
	for {
		if err := c.API.List(ctx, list, client.Limit(500), client.Continue(list.Continue)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			all[list.Items[i].Namespace+"/"+list.Items[i].Name] = list.Items[i].UID
		}
		if list.Continue == "" {
			return all, nil
		}
	}
}
