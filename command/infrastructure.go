// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/infrastructure"
	infracommand "github.com/hookgate/hookgate/infrastructure/command"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// infrastructureOptions are the flags of hookgate infrastructure: those about its controllers, and those that all
// processes have.
type infrastructureOptions struct {
	controllers    infracommand.Options
	logFormat      string
	logLevel       string
	leaderElection leaderElectionOptions
	diagnostics    diagnosticsOptions
	tls            tlsOptions
	webhooks       webhookOptions
	shutdownDelay  time.Duration
}

func newInfrastructureCommand(hooks *catalog.Catalog) *cobra.Command {
	var o infrastructureOptions
	cmd := infracommand.New(&o.controllers, func(cmd *cobra.Command) error {
		return o.run(cmd.Context(), hooks, cmd.ErrOrStderr())
	})
	f := cmd.Flags()
	o.leaderElection.addFlags(f, "let only one of several replicas work; needed with more than one replica")
	o.diagnostics.addFlags(f)
	f.Lookup("diagnostics-address").Usage = "address for /metrics: plain HTTP on loopback; HTTPS on any other " +
		"address, for clients with a token whose user may get /metrics in the cluster"
	f.Lookup("health-addr").Usage = "address for /healthz and /readyz in plain HTTP; without this flag, neither " +
		"is served"
	o.tls.addFlags(f)
	o.webhooks.addFlagsFor(f, "port of the webhooks that validate the kinds; 0 for none")
	f.DurationVar(&o.shutdownDelay, "shutdown-delay", 0, "how long webhooks are still answered after SIGTERM, "+
		"so that the API server can switch to another replica")
	f.StringVar(&o.logFormat, "log-format", "text", "format of the log: text or json")
	f.StringVar(&o.logLevel, "log-level", "info", "lowest level to log: debug, info, warn or error")
	return cmd
}

func (o *infrastructureOptions) check() error {
	if err := o.controllers.Check(); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(o.diagnostics.address); err != nil {
		return cmdline.Usagef("--diagnostics-address: %w", err)
	}
	if o.shutdownDelay < 0 {
		return cmdline.Usagef("--shutdown-delay: want 0 or more, got %s", o.shutdownDelay)
	}
	return o.webhooks.check(false)
}

// run runs the controllers until ctx is done.
func (o *infrastructureOptions) run(ctx context.Context, hooks *catalog.Catalog, errOut io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	logger, err := newLogger(errOut, o.logFormat, o.logLevel)
	if err != nil {
		return err
	}
	logLibraries(logger)
	settings, err := o.tls.settings()
	if err != nil {
		return err
	}
	restConfig, namespace, err := loadKubeconfig(o.controllers.Kubeconfig)
	if err != nil {
		return err
	}
	mgr, err := o.newManager(restConfig, namespace, logger)
	if err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	gateway, err := o.controllers.SetUp(ctx, mgr, hooks, namespace, logger)
	if err != nil {
		return err
	}
	defer gateway.Close()
	background, err := o.diagnosticsServers(ctx, mgr, settings, logger)
	if err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	if o.webhooks.port != 0 {
		webhooks, err := o.webhooks.listenWith(ctx, infrastructure.Webhooks(mgr.GetClient(), logger), settings, logger)
		if err != nil {
			return err
		}
		background = append(background, webhooks)
	}
	return runAll(ctx, managed{mgr, o.shutdownDelay}, background...)
}

// managed is a manager as a runner. What runs beside it runs for the delay longer.
type managed struct {
	manager.Manager

	delay time.Duration
}

// Run runs the manager until ctx is done.
func (m managed) Run(ctx context.Context) error {
	if err := m.Start(ctx); err != nil {
		return fmt.Errorf("infrastructure: %w", err)
	}
	time.Sleep(m.delay)
	return nil
}

// newManager returns the manager of the controllers.
func (o *infrastructureOptions) newManager(
	config *rest.Config, namespace string, logger *slog.Logger,
) (manager.Manager, error) {
	election := &o.leaderElection
	return o.controllers.NewManager(config, manager.Options{
		Logger:         logr.FromSlogHandler(quietEnd{logger.Handler()}),
		LeaderElection: election.enabled, LeaderElectionNamespace: namespace,
		LeaseDuration: &election.leaseDuration, RenewDeadline: &election.renewDeadline, RetryPeriod: &election.retryPeriod,
	})
}
