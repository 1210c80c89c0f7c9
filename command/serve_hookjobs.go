// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/pflag"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
)

// hookJobOptions are the flags about what HookJobs may do.
type hookJobOptions struct {
	namespaces      []string
	serviceAccounts []string
	podSecurity     string
}

func (o *hookJobOptions) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.namespaces, "hook-jobs-namespace", nil,
		"namespace in which Jobs of HookJobs may run; the word "+hookjob.BesideCluster+" allows the namespace of each "+
			"Cluster; may be repeated, and the first is the default; without this flag, a call fails if a "+
			"HookJob should answer it")
	f.StringSliceVar(&o.serviceAccounts, "hook-jobs-service-account", nil,
		"service account that Jobs of HookJobs may use; may be repeated; without this flag, Jobs have no credentials "+
			"for the cluster")
	f.StringVar(&o.podSecurity, "hook-jobs-pod-security", string(podsecurity.LevelRestricted),
		"level of the Pod Security Standards that Jobs of HookJobs must meet: restricted, baseline or privileged")
}

// check returns an error of usage unless the flags are right.
func (o *hookJobOptions) check(readOnly bool) error {
	if readOnly && len(o.namespaces) > 0 {
		return cmdline.Usagef("--read-only and --hook-jobs-namespace: Jobs are written to the cluster; give only one of " +
			"these flags")
	}
	for _, namespace := range o.namespaces {
		if err := hookjob.CheckNamespace(namespace); err != nil {
			return cmdline.Usagef("--hook-jobs-namespace %q: %w", namespace, err)
		}
	}
	if level := podsecurity.Level(o.podSecurity); !level.Valid() {
		return cmdline.Usagef("--hook-jobs-pod-security: want restricted, baseline or privileged, got %q", o.podSecurity)
	}
	return nil
}

func (o *hookJobOptions) allowed() hookjob.Allowed {
	return hookjob.Allowed{
		Namespaces: o.namespaces, ServiceAccounts: o.serviceAccounts, PodSecurity: podsecurity.Level(o.podSecurity),
	}
}
