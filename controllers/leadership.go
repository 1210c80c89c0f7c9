// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

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

// LeaderElection configures the Lease that replicas compete for. Its zero value is for a single replica, which leads.
type LeaderElection struct {
	Enabled bool
	// Namespace and Name identify the Lease.
	Namespace, Name string

	// LeaseDuration is the time for which others wait for a silent leader. Zero means 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is the time after which a leader that cannot renew its lease gives up. Zero means 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is the time between attempts. Zero means 2 s.
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
	const factor = leaderelection.JitterFactor
	least := time.Duration(factor * float64(d.RetryPeriod))
	if d.LeaseDuration <= d.RenewDeadline || d.RenewDeadline <= least || d.RetryPeriod <= 0 {
		return fmt.Errorf("leader election: LeaseDuration must be more than RenewDeadline, and RenewDeadline "+
			"more than %g times RetryPeriod", factor)
	}
	return nil
}

func (e LeaderElection) withDefaults() LeaderElection {
	e.LeaseDuration = cmp.Or(e.LeaseDuration, 15*time.Second)
	e.RenewDeadline = cmp.Or(e.RenewDeadline, 10*time.Second)
	e.RetryPeriod = cmp.Or(e.RetryPeriod, 2*time.Second)
	return e
}

// leadership knows whether this replica leads. It is safe for concurrent use.
type leadership struct {
	config  LeaderElection
	rest    *rest.Config
	logger  *slog.Logger
	current atomic.Pointer[term]
}

// term is a period in which this replica leads. Its context ends with it.
type term struct{ ctx context.Context }

func newLeadership(c LeaderElection, r *rest.Config, logger *slog.Logger) *leadership {
	return &leadership{config: c.withDefaults(), rest: r, logger: logger}
}

// term returns the context of the present term: nil if this replica does not lead.
func (l *leadership) term() context.Context {
	if t := l.present(); t != nil {
		return t.ctx
	}
	return nil
}

// present returns the present term: nil if this replica does not lead.
func (l *leadership) present() *term {
	if t := l.current.Load(); t != nil && t.ctx.Err() == nil {
		return t
	}
	return nil
}

// beginAlone makes a single replica lead until ctx is done, and does nothing for one of several.
func (l *leadership) beginAlone(ctx context.Context) {
	if !l.config.Enabled {
		l.current.Store(&term{ctx: ctx})
	}
}

// run calls started whenever this replica becomes the leader of several, until ctx is done. A replica that loses the
// lease, for instance because the API server is away, competes for it again.
func (l *leadership) run(ctx context.Context, started func(context.Context)) error {
	begin := func(ctx context.Context) {
		l.current.Store(&term{ctx: ctx})
		started(ctx)
	}
	if !l.config.Enabled {
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
			LeaseDuration: l.config.LeaseDuration, RenewDeadline: l.config.RenewDeadline,
			RetryPeriod: l.config.RetryPeriod,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					l.logger.Info("this replica leads: it discovers extensions and writes status",
						"lease", lock.Describe())
					begin(ctx)
				},
				OnStoppedLeading: func() {
					if ctx.Err() == nil {
						l.logger.Warn("this replica no longer leads: it follows the leader's status",
							"lease", lock.Describe())
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

// lock returns the lock on the Lease, with an identity of this process.
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
