// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// LeaderElection is about the Lease that replicas compete for. Its zero value is for a single replica, which leads.
type LeaderElection struct {
	Enabled bool
	// Namespace is that of the Lease.
	Namespace string
	// Name is that of the Lease.
	Name string

	// LeaseDuration is how long others wait for a leader that is silent: 15 s if zero.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew its lease before it gives up: 10 s if zero.
	RenewDeadline time.Duration
	// RetryPeriod is the time between attempts: 2 s if zero.
	RetryPeriod time.Duration
}

func (e LeaderElection) check() error {
	switch {
	case !e.Enabled:
		return nil
	case e.Namespace == "" || e.Name == "":
		return errors.New("leader election: Namespace and Name of the Lease are required")
	}
	d := e.withDefaults()
	if d.LeaseDuration <= d.RenewDeadline || float64(d.RenewDeadline) <= leaderelection.JitterFactor*float64(d.RetryPeriod) || d.RetryPeriod <= 0 {
		return fmt.Errorf("leader election: LeaseDuration must be more than RenewDeadline, and that more than %g times RetryPeriod",
			leaderelection.JitterFactor)
	}
	return nil
}

func (e LeaderElection) withDefaults() LeaderElection {
	e.LeaseDuration = cmp.Or(e.LeaseDuration, 15*time.Second)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, 10*time.Second)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, 2*time.Second)
	return e
}

// leadership tells whether this replica leads at present. It is safe for concurrent use.
type leadership struct {
	config  LeaderElection
	rest    *rest.Config
	logger  *slog.Logger
	current atomic.Pointer[term]
}

// term is a time of leading. Its context ends with it.
type term struct{ ctx context.Context }

func newLeadership(c LeaderElection, r *rest.Config, logger *slog.Logger) *leadership {
	return &leadership{config: c.withDefaults(), rest: r, logger: logger}
}

// term returns the context of the present term, nil if another replica leads.
func (l *leadership) term() context.Context {
	if t := l.current.Load(); t != nil && t.ctx.Err() == nil {
		return t.ctx
	}
	return nil
}

// run calls started whenever this replica begins to lead, until ctx is done. Whoever loses the lease, because the API server
// is away for instance, competes for it again.
func (l *leadership) run(ctx context.Context, started func(context.Context)) error {
	begin := func(ctx context.Context) {
		l.current.Store(&term{ctx: ctx})
		started(ctx)
	}
	if !l.config.Enabled {
		begin(ctx)
		<-ctx.Done()
		return nil
	}
	lock, err := l.lock()
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, Name: l.config.Name, ReleaseOnCancel: true,
			LeaseDuration: l.config.LeaseDuration, RenewDeadline: l.config.RenewDeadline, RetryPeriod: l.config.RetryPeriod,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					l.logger.Info("this replica leads: it discovers extensions and writes status", "lease", lock.Describe())
					begin(ctx)
				},
				OnStoppedLeading: func() {
					if ctx.Err() == nil {
						l.logger.Warn("this replica does not lead any more: it follows what another writes", "lease", lock.Describe())
					}
				},
			},
		})
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
	}
	return nil
}

// lock returns the Lease, under a name of this process.
func (l *leadership) lock() (*resourcelock.LeaseLock, error) {
	config := rest.CopyConfig(l.rest)
	config.Timeout = l.config.RenewDeadline / 2 // so that there is a second attempt
	leases, err := coordinationv1client.NewForConfig(rest.AddUserAgent(config, "leader-election"))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: l.config.Namespace, Name: l.config.Name},
		Client:     leases,
		LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
	}, nil
}
