// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/util/cert"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/machines"
	machinescommand "github.com/hookgate/hookgate/machines/command"
	"github.com/hookgate/hookgate/registry"
)

// machinesGroups has each flag of hookgate machines once. They mean what they mean for hookgate serve.
var machinesGroups = []cmdline.FlagGroup{
	{Title: "Machines", Flags: []string{"machines-namespace", "machines-max-hold", "machine-concurrency"}},
	{Title: "Where registrations come from", Flags: []string{"kubeconfig", "resync"}},
	extensionFlags,
	configFlags,
	jobFlags,
	replicaFlags,
	{Title: "Health, metrics and traces", Flags: []string{
		"diagnostics-address", "insecure-diagnostics", "health-addr", "ui", "profiler-address", "cert-dir",
		"tls-min-version", "tls-cipher-suites", "otlp-endpoint", "otlp-insecure", "trace-ratio",
	}},
	{Title: "The process", Flags: []string{"log-format", "log-level", "memory-budget", "help"}},
}

func newMachinesCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	o := serveOptions{versions: versions}
	cmd := &cobra.Command{
		Use:   "machines",
		Short: "Call the hooks of single Machines, without serving hooks",
		Long: "For each Machine of a cluster, call the hooks of the group hooks.machines.hookgate.dev that are\n" +
			"about a single Machine: before the Machine is drained and terminated, once it has been\n" +
			"provisioned, and to remediate it. The command does the same as \"hookgate serve --machines\",\n" +
			"but without the addresses for callers. The command reads ExtensionConfigs, and discovers the\n" +
			"handlers of their extensions; with --read-only, it uses the handlers that another gateway has\n" +
			"discovered. The command runs until SIGTERM or Ctrl-C. If you run several replicas, only one is\n" +
			"active at a time.\n\n" +
			"The log goes to standard error.",
		Example: "  hookgate machines --kubeconfig ~/.kube/config\n" +
			"  hookgate machines --kubeconfig ~/.kube/config --machines-namespace team-a --read-only",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			remove, err := o.serveMachinesAlone()
			if err != nil {
				return err
			}
			defer remove()
			return o.run(cmd.Context(), hooks, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(all)
	for _, g := range machinesGroups {
		for _, name := range g.Flags {
			if flag := all.Lookup(name); flag != nil {
				cmd.Flags().AddFlag(flag)
			}
		}
	}
	cmd.Flags().Lookup("cert-dir").Usage = "directory with tls.crt and tls.key for --diagnostics-address; without " +
		"this flag, the process makes a certificate that clients do not trust"
	cmdline.GroupFlags(cmd, machinesGroups)
	cmd.AddCommand(machinescommand.NewRelease())
	return cmd
}

// serveMachinesAlone sets the options of hookgate machines. remove removes the certificate that it has made.
func (o *serveOptions) serveMachinesAlone() (remove func(), err error) {
	o.machines.Enabled, o.machinesAlone = true, true
	o.httpAddress, o.grpcAddress, o.openapi = "", "", false
	if o.certDir != "" {
		return func() {}, nil
	}
	// What reads the metrics of Pods checks no certificate; the token is what is checked.
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err == nil {
		o.certDir, err = os.MkdirTemp("", "hookgate-machines-")
	}
	remove = func() { _ = os.RemoveAll(o.certDir) }
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err == nil {
			err = os.WriteFile(filepath.Join(o.certDir, name), content, 0o600)
		}
	}
	if err != nil {
		remove()
		return nil, fmt.Errorf("certificate of --diagnostics-address: %w", err)
	}
	return remove, nil
}

// machinesControllers returns the controllers of the hooks of Machines, with --machines, and of AfterClusterDelete,
// with --clusters.
func (o *serveOptions) machinesControllers(
	at connection, hooks *catalog.Catalog, d *gateway.Dispatcher, reg registry.Snapshots, metrics prometheus.Registerer,
	logger *slog.Logger,
) ([]runner, error) {
	election := &o.cluster.leaderElection
	c := machines.Config{
		REST: at.rest, Catalog: hooks, Registry: reg,
		Metrics: metrics, Logger: logger, Namespace: o.cluster.namespace, WatchFilter: o.cluster.watchFilter,
		LeaderElection: machines.LeaderElection{
			Enabled: true, Namespace: at.namespace, LeaseDuration: election.leaseDuration,
			RenewDeadline: election.renewDeadline, RetryPeriod: election.retryPeriod,
		},
	}
	var all []runner
	const ofMachines, ofClusters = "hookgate machines", "hookgate clusters"
	for caller, is := range map[string]bool{ofMachines: o.machines.Enabled, ofClusters: o.machines.Clusters} {
		if !is {
			continue
		}
		c.Hooks, c.Clusters = gateway.NewInProcess(d, caller), caller == ofClusters
		controllers, err := o.machines.New(c)
		if err != nil {
			return nil, err
		}
		all = append(all, controllers)
	}
	return all, nil
}
