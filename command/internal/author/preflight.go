// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/preflight"
	"github.com/hookgate/hookgate/internal/cli/survey"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

// preflightOptions are the flags of hookgate preflight. Those that hookgate serve has, too, have its names.
type preflightOptions struct {
	versions *hookversion.Converter

	targets          []string
	from             string
	extensionConfigs string
	discover         bool
	kube             target.KubeOptions
	group            string
	watchFilter      string
	output           string
	failOn           string
	record           bool
	allowEmpty       bool
	timeout          time.Duration
}

// NewPreflightCommand returns the command hookgate preflight.
func NewPreflightCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	o := preflightOptions{versions: versions}
	cmd := &cobra.Command{
		Use:   "preflight --for TARGET [--kubeconfig FILE | --extension-configs DIR]",
		Short: "Show what an upgrade means for the registered handlers",
		Long: "For each registered handler, show whether an upgrade would break the handler, lose part of its\n" +
			"requests, or need attention. Also show what to do, such as which ExtensionPolicy to apply.\n" +
			"docs/upgrading.md explains the findings. preflight calls no hook, needs no gateway, and\n" +
			"makes changes only with --record.\n\n" +
			"TARGET is cluster-api=VERSION or hookgate=VERSION, or both if you give --for twice. The effects of an\n" +
			"upgrade of Cluster API depend on the release that runs now. --from names this release; in a cluster\n" +
			"where clusterctl has installed Cluster API, preflight finds the release itself.\n\n" +
			"The exit status is 0 if nothing breaks; 1 if something breaks, the handlers of an extension are not\n" +
			"known, there is nothing to judge, or preflight cannot tell; and 2 for wrong usage.",
		Example: "  hookgate preflight --for cluster-api=v1.14.0 --context management\n" +
			"  hookgate preflight --for cluster-api=v1.14.0 --from cluster-api=v1.12.4 \\\n" +
			"    --extension-configs manifests/ --discover\n" +
			"  hookgate preflight --for hookgate=v0.1.0 --extension-configs manifests/ -o sarif > preflight.sarif",
		Args: cmdline.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd, hooks) },
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.targets, "for", nil,
		"what runs after the upgrade: cluster-api=VERSION or hookgate=VERSION; may be given twice, once for each")
	f.StringVar(&o.from, "from", "",
		"the release of Cluster API that runs now: cluster-api=VERSION; default: the release that clusterctl has "+
			"recorded in the cluster")
	f.StringVar(&o.extensionConfigs, "extension-configs", "",
		"directory with manifests of ExtensionConfigs and ExtensionPolicies")
	f.BoolVar(&o.discover, "discover", false,
		"call Discovery of the extensions in --extension-configs instead of reading status.handlers")
	o.kube.AddFlags(f)
	f.StringVar(&o.group, "extension-config-group", "",
		"API group of the ExtensionConfigs: "+controllers.ClusterAPIGroup+" or "+controllers.HookgateGroup+
			"; default: both")
	f.StringVar(&o.watchFilter, "watch-filter", "",
		"judge only ExtensionConfigs whose label cluster.x-k8s.io/watch-filter has this value")
	f.StringVarP(&o.output, "output", "o", cmdline.FormatTable,
		"format: table; json; sarif, for CI systems; or policies, which prints only the ExtensionPolicies to apply")
	f.StringVar(&o.failOn, "fail-on", string(preflight.Break),
		"lowest level of a finding for which the exit status is 1: break (includes unknown), degrade or warn")
	f.BoolVar(&o.record, "record", false,
		"record the verdict in the Deployment that would be upgraded; the upgrade guard (deploy/upgrade-guard/) "+
			"refuses the upgrade unless the recorded verdict approves it; an approval expires after a day, or when a "+
			"registration changes")
	f.BoolVar(&o.allowEmpty, "allow-empty", false,
		"accept that nothing is registered: the exit status is then 0, and --record approves the upgrade")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "how long the command may take")
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&o.kube)})
	return cmd
}

// The formats of -o that only preflight has.
const (
	formatSARIF    = "sarif"
	formatPolicies = "policies"
)

// check returns the target that the flags name, and an error of usage unless they fit together.
func (o *preflightOptions) check(hooks *catalog.Catalog) (preflight.Target, error) {
	t := preflight.Target{
		Hooks: hooks, HookLosses: o.versions.CallLosses, Lossy: convert.Lossy, Changes: catalog.ClusterAPIChanges,
	}
	if len(o.targets) == 0 {
		return t, cmdline.Usagef("--for is required: cluster-api=VERSION, or hookgate=VERSION")
	}
	for _, text := range o.targets {
		if err := t.ParseTarget(text); err != nil {
			return t, cmdline.Usagef("--for: %w", err)
		}
	}
	if version, ok := strings.CutPrefix(o.from, preflight.ClusterAPI+"="); o.from != "" {
		var err error
		if !ok {
			return t, cmdline.Usagef("--from %q: want %s=VERSION", o.from, preflight.ClusterAPI)
		}
		if t.From, err = catalog.ClusterAPIReleaseOf(version); err != nil {
			return t, cmdline.Usagef("--from: %w", err)
		}
	}
	switch {
	case o.extensionConfigs != "" && (o.kube != target.KubeOptions{}):
		return t, cmdline.Usagef("--extension-configs cannot be used with --kubeconfig or --context: " +
			"ExtensionConfigs come either from a directory or from a cluster")
	case o.record && (o.extensionConfigs != "" || o.group != "" || o.watchFilter != ""):
		return t, cmdline.Usagef("--record needs all registrations of a cluster: leave out --extension-configs, " +
			"--extension-config-group and --watch-filter")
	case o.record && t.ClusterAPI != nil && t.ClusterAPI.Announced:
		return t, cmdline.Usagef("--record: this hookgate knows Cluster API %s only from announcements: use a "+
			"hookgate that is newer than that release", t.ClusterAPI.Name)
	case o.discover && o.extensionConfigs == "":
		return t, cmdline.Usagef("--discover: in a cluster, the gateway discovers extensions; use it with " +
			"--extension-configs")
	case o.group != "" && o.group != controllers.ClusterAPIGroup && o.group != controllers.HookgateGroup:
		return t, cmdline.Usagef("--extension-config-group: want %s or %s, got %q",
			controllers.ClusterAPIGroup, controllers.HookgateGroup, o.group)
	case !slices.Contains([]string{cmdline.FormatTable, cmdline.FormatJSON, formatSARIF, formatPolicies}, o.output):
		return t, cmdline.Usagef("--output %q: want table, json, sarif or policies", o.output)
	case !slices.Contains([]preflight.Level{preflight.Break, preflight.Degrade, preflight.Warn},
		preflight.Level(o.failOn)):
		return t, cmdline.Usagef("--fail-on %q: want break, degrade or warn", o.failOn)
	case o.timeout <= 0:
		return t, cmdline.Usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	return t, nil
}

func (o *preflightOptions) run(cmd *cobra.Command, hooks *catalog.Catalog) error {
	target, err := o.check(hooks)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), o.timeout, fmt.Errorf("not done within %s", o.timeout))
	defer cancel()
	var inventory preflight.Inventory
	var from *survey.Cluster
	target.FromSource = "--from"
	if o.extensionConfigs != "" {
		inventory, err = o.readDirectory(ctx, target.Hooks)
	} else if from, err = o.openCluster(); err == nil {
		inventory, err = readCluster(ctx, from, &target, cmd.ErrOrStderr())
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			err = cause
		}
		return fmt.Errorf("preflight: %w", err)
	}
	if inventory.Empty() && !o.allowEmpty {
		return fmt.Errorf("preflight: there is nothing to judge: %s", o.nothing())
	}
	report := preflight.Judge(inventory, target)
	if err := o.print(cmd.OutOrStdout(), &report); err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	failed := report.Worst().AtLeast(o.least())
	if o.record {
		verdicts := o.verdicts(&inventory, &target, &report, failed)
		if err := recordVerdicts(ctx, from, verdicts, cmd.ErrOrStderr()); err != nil {
			return fmt.Errorf("record the verdict: %w", err)
		}
	}
	if failed {
		return errors.New(verdict(&report, o.least()))
	}
	return nil
}

// verdicts returns what to record about each component that is upgraded.
func (o *preflightOptions) verdicts(
	v *preflight.Inventory, t *preflight.Target, r *preflight.Report, failed bool,
) []survey.Verdict {
	refused := ""
	if failed {
		refused = fmt.Sprintf("%s: %s", verdict(r, o.least()), strings.Join(r.Objects(o.least()), ", "))
	}
	var verdicts []survey.Verdict
	if t.ClusterAPI != nil {
		verdicts = append(verdicts, survey.Verdict{Component: preflight.ClusterAPI, Release: t.ClusterAPI.Name})
	}
	if t.Gateway != "" {
		verdicts = append(verdicts, survey.Verdict{Component: preflight.Gateway, Release: t.Gateway})
	}
	for i := range verdicts {
		verdicts[i].Refused, verdicts[i].Registrations = refused, v.Registrations
	}
	return verdicts
}

func recordVerdicts(ctx context.Context, c *survey.Cluster, verdicts []survey.Verdict, notes io.Writer) error {
	for _, v := range verdicts {
		deployment, err := c.Record(ctx, v)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(notes, "The command recorded the verdict in annotations of Deployment %s.\n", deployment)
	}
	return nil
}

// nothing says where no registration was found.
func (o *preflightOptions) nothing() string {
	if o.extensionConfigs != "" {
		return fmt.Sprintf("%s has no ExtensionConfig", o.extensionConfigs)
	}
	where := "the cluster has no ExtensionConfig in " +
		cmp.Or(o.group, controllers.ClusterAPIGroup+" and in "+controllers.HookgateGroup)
	if o.watchFilter != "" {
		where += fmt.Sprintf(" with the label %s=%s", clusterv1.WatchLabel, o.watchFilter)
	}
	return where + "; is it the right cluster? If it is, give --allow-empty"
}

// least returns the least level for which the exit status is 1. What is not known may break.
func (o *preflightOptions) least() preflight.Level {
	if l := preflight.Level(o.failOn); l != preflight.Break {
		return l
	}
	return preflight.Unknown
}

// verdict returns why the exit status is 1.
func verdict(r *preflight.Report, least preflight.Level) string {
	n := 0
	for _, level := range []preflight.Level{preflight.Break, preflight.Unknown, preflight.Degrade, preflight.Warn} {
		if level.AtLeast(least) {
			n += r.Count(level)
		}
	}
	switch unknown := r.Count(preflight.Unknown); {
	case least == preflight.Unknown && unknown == 0:
		least = preflight.Break
	case least == preflight.Unknown && unknown < n:
		least = preflight.Break + " or " + preflight.Unknown
	}
	return fmt.Sprintf("%s: %s of level %s", strings.Join(r.Targets, ", "), text.Plural(n, "finding"), least)
}

func (o *preflightOptions) print(w io.Writer, r *preflight.Report) error {
	switch o.output {
	case cmdline.FormatJSON:
		return r.WriteJSON(w)
	case formatSARIF:
		return r.WriteSARIF(w, cmdline.CurrentBuild().Version)
	case formatPolicies:
		_, err := io.WriteString(w, r.Manifests())
		return err
	}
	return cmdline.NewScreen(w).Write(false, r.WriteTable)
}

func (o *preflightOptions) readDirectory(ctx context.Context, hooks *catalog.Catalog) (preflight.Inventory, error) {
	if !o.discover {
		return survey.Directory(ctx, o.extensionConfigs, hooks, nil)
	}
	transports := extension.NewProtocols(extension.Config{Catalog: hooks, Codec: codec.New(hooks)})
	defer transports.Close()
	return survey.Directory(ctx, o.extensionConfigs, hooks, transports)
}

// openCluster returns the cluster of the flags. It does not connect yet.
func (o *preflightOptions) openCluster() (*survey.Cluster, error) {
	config, err := o.kube.Load()
	if err != nil {
		return nil, err
	}
	groups := []string{o.group}
	if o.group == "" {
		groups = []string{controllers.ClusterAPIGroup, controllers.HookgateGroup}
	}
	return survey.NewCluster(config, o.watchFilter, groups...)
}

func readCluster(
	ctx context.Context, from *survey.Cluster, t *preflight.Target, notes io.Writer,
) (preflight.Inventory, error) {
	if t.From == nil && t.ClusterAPI != nil {
		version, provider, err := from.RunningClusterAPI(ctx)
		if err == nil {
			t.From, err = catalog.ClusterAPIReleaseOf(version)
			t.FromSource = "Provider " + provider
		}
		if err != nil {
			_, _ = fmt.Fprintf(notes, "The release of Cluster API that runs now is not known: %v. Name it with "+
				"--from %s=VERSION.\n",
				err, preflight.ClusterAPI)
		}
	}
	return from.Inventory(ctx, t.Hooks)
}
