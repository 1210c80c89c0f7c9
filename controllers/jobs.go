// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// jobKinds are the kinds that HookJobs read and write besides Secrets.
var jobKinds = []schema.GroupVersionKind{
	batchv1.SchemeGroupVersion.WithKind("Job"), batchv1.SchemeGroupVersion.WithKind("JobList"), // a cache looks for both
	corev1.SchemeGroupVersion.WithKind("Pod"),
	corev1.SchemeGroupVersion.WithKind("ConfigMap"), hookjob.MachineKind, owner.ClusterKind,
}

// jobCluster runs the Jobs of HookJobs. The zero value runs none.
type jobCluster struct {
	jobs  *hookjob.Cluster
	cache cache.Cache // of the Jobs alone
}

// newJobCluster returns what runs Jobs in the namespaces that are allowed, if any are.
func (s *Source) newJobCluster(ctx context.Context, problems *watchProblems) (jobCluster, error) {
	allowed := s.config.HookJobs.Namespaces
	if len(allowed) == 0 {
		return jobCluster{}, nil
	}
	ours, err := labels.NewRequirement(hookjob.HookJobLabel, selection.Exists, nil)
	if err != nil {
		return jobCluster{}, err
	}
	var namespaces map[string]cache.Config // nil for all
	if !slices.Contains(allowed, hookjob.BesideCluster) {
		namespaces = map[string]cache.Config{}
		for _, name := range allowed {
			namespaces[name] = cache.Config{}
		}
	}
	scheme, mapper := newScheme(s.config.Group), newMapper(s.config.Group)
	jobs, err := cache.New(s.config.REST, cache.Options{
		Scheme: scheme, Mapper: mapper, DefaultNamespaces: namespaces, DefaultWatchErrorHandler: problems.handle,
		DefaultLabelSelector: labels.NewSelector().Add(*ours), DefaultTransform: keepJob,
	})
	if err != nil {
		return jobCluster{}, err
	}
	if _, err := jobs.GetInformer(ctx, &batchv1.Job{}, cache.BlockUntilSynced(false)); err != nil {
		return jobCluster{}, err
	}
	live, err := client.New(s.config.REST, client.Options{Scheme: scheme, Mapper: mapper})
	return jobCluster{cache: jobs, jobs: &hookjob.Cluster{
		Jobs: jobs, API: live, Namespace: s.config.OwnNamespace, Logger: s.config.Logger,
		Event: s.jobEvent,
	}}, err
}

// keepJob removes from a Job what the cache does not need.
func keepJob(object any) (any, error) {
	if job, ok := object.(*batchv1.Job); ok {
		job.ManagedFields, job.Spec.Template = nil, corev1.PodTemplateSpec{}
	}
	return object, nil
}

// run watches the Jobs until ctx is done.
func (c jobCluster) run(ctx context.Context) error {
	if c.cache == nil {
		return nil
	}
	return c.cache.Start(ctx)
}

// sweep looks after the Jobs that no call asks about, while leads says so, until ctx is done.
func (c jobCluster) sweep(ctx context.Context, leads func() bool) {
	if c.jobs != nil {
		c.jobs.Run(ctx, leads)
	}
}
