// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/machines"
)

// allNamespaces is what --machines-namespace says for Machines of all namespaces.
const allNamespaces = "*"

// Options are the flags about the controllers.
type Options struct {
	Enabled     bool
	Clusters    bool
	namespace   string
	maxHold     time.Duration
	concurrency int
}

// AddFlags adds the flags.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.Enabled, "machines", false,
		"for each Machine of the cluster, call the hooks of hooks.machines.hookgate.dev, for example before the "+
			"Machine is drained; if there are several replicas, only one calls the hooks at a time, with or "+
			"without --leader-elect")
	f.BoolVar(&o.Clusters, "clusters", false,
		"call AfterClusterDelete, of hooks.machines.hookgate.dev, for each deleted Cluster until the handlers "+
			"have answered Success; if there are several replicas, only one calls the hook at a time")
	f.StringVar(&o.namespace, "machines-namespace", "",
		"namespace of the Machines and, with --clusters, of the Clusters for which hooks are called; * means all "+
			"namespaces; default: the value of --namespace")
	f.DurationVar(&o.maxHold, "machines-max-hold", 0,
		"during a deletion, how long handlers may hold the Machine before it is drained, and again before it "+
			"is terminated; after that, the deletion goes on regardless; 0 means no limit")
	f.IntVar(&o.concurrency, "machine-concurrency", machines.DefaultConcurrency,
		"how many Machines are reconciled at the same time")
}

// Check returns an error of usage unless the flags are right.
func (o *Options) Check(wantsCluster bool) error {
	switch {
	case o.Enabled && !wantsCluster:
		return cmdline.Usagef("--machines needs a management cluster, which this gateway does not have: leave out the " +
			"flag, or give --kubeconfig")
	case o.Clusters && !wantsCluster:
		return cmdline.Usagef("--clusters needs a management cluster, which this gateway does not have: leave out the " +
			"flag, or give --kubeconfig")
	case o.maxHold < 0:
		return cmdline.Usagef("--machines-max-hold: want 0 or more, got %s", o.maxHold)
	case o.concurrency <= 0:
		return cmdline.Usagef("--machine-concurrency: want more than 0, got %d", o.concurrency)
	}
	return nil
}

// New returns the controllers that c and the flags describe. The namespace of c counts unless a flag names another.
func (o *Options) New(c machines.Config) (*machines.Controllers, error) {
	switch o.namespace {
	case "":
	case allNamespaces:
		c.Namespace = metav1.NamespaceAll
	default:
		c.Namespace = o.namespace
	}
	c.MaxHold, c.Concurrency = o.maxHold, o.concurrency
	return machines.New(c)
}
