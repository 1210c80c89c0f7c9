// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// lift is a hold that is lifted: the arguments of hookgate lift.
type lift struct {
	handler, hook, cluster string
	// version is the version of a held upgrade; if it is empty, the one that the Cluster asks for.
	version string
	// policy is the ExtensionPolicy that lifts it; empty for the one that applies.
	policy string

	name, extension string // of the handler, without and of the extension
	key             client.ObjectKey
}

// NewLiftCommand returns the command hookgate lift.
func NewLiftCommand(hooks *catalog.Catalog) *cobra.Command {
	var kube target.KubeOptions
	var of lift
	yes := false
	cmd := &cobra.Command{
		Use:   "lift HANDLER --cluster NAMESPACE/NAME [--hook HOOK]",
		Short: "Let one Cluster go on although a handler holds it",
		Long: "Let one Cluster go on although a handler holds it; \"hookgate get holds\" lists the holds. The\n" +
			"command shows what it will change, and asks for confirmation. For the handler of an extension, the command\n" +
			"adds an entry to spec.liftedHolds of the ExtensionPolicy that applies, or of a new ExtensionPolicy. The entry\n" +
			"is valid for one upgrade, creation or deletion. If HANDLER is rule.NAME, for the HookRule NAME,\n" +
			"the command adds an annotation to the Cluster. The annotation also lifts later holds of the rule.",
		Example: "  hookgate lift before-delete.volumes --hook BeforeClusterDelete --cluster team-a/prod-1\n" +
			"  hookgate lift rule.business-hours --cluster team-a/prod-1 --context management",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdline.Usagef("want the name of one handler, see \"hookgate get holds\"; got %d names", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of.handler = args[0]
			if err := of.parse(hooks); err != nil {
				return err
			}
			config, err := kube.Load()
			if err != nil {
				return err
			}
			c, err := newClient(config)
			if err != nil {
				return err
			}
			return of.run(cmd.Context(), hooks, &liftWork{c, dialog{cmd.InOrStdin(), cmd.OutOrStdout(), yes}})
		},
	}
	f := cmd.Flags()
	f.StringVar(&of.cluster, "cluster", "", "the Cluster, as NAMESPACE/NAME")
	f.StringVar(&of.hook, "hook", "", "hook at which the Cluster waits, such as BeforeClusterUpgrade")
	f.StringVar(&of.version, "version", "",
		"version of Kubernetes to which the held upgrade would bring the Cluster; default: "+
			"spec.topology.version of the Cluster")
	f.StringVar(&of.policy, "policy", "", "ExtensionPolicy to change; default: the one that applies to the handler")
	f.BoolVarP(&yes, "yes", "y", false, "skip the confirmation")
	kube.AddFlags(f)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&kube)})
	return cmd
}

// liftWork changes what lifts a hold, after it has shown the change and asked.
type liftWork struct {
	client.Client
	dialog
}

// parse checks the arguments.
func (l *lift) parse(hooks *catalog.Catalog) (err error) {
	var ok bool
	if l.name, l.extension, ok = strings.Cut(l.handler, "."); !ok || l.name == "" || l.extension == "" {
		return cmdline.Usagef("want a handler as \"hookgate get holds\" shows it, such as before-delete.acme; got %q",
			text.Cut(l.handler, limits.QuotedBytes))
	}
	if l.key, err = target.ParseCluster(l.cluster); err != nil {
		return err
	}
	if l.ofRule() && l.hook == "" {
		return nil
	}
	if h, ok := l.hookIn(hooks); !ok || !h.Liftable() {
		return cmdline.Usagef("--hook: want the lifecycle hook at which the Cluster waits, see \"hookgate get holds\"; "+
			"got %q", text.Cut(l.hook, limits.QuotedBytes))
	}
	return nil
}

// ofRule reports whether a HookRule holds.
func (l *lift) ofRule() bool { return l.name == hookrule.HandlerName }

func (l *lift) hookIn(hooks *catalog.Catalog) (*catalog.Hook, bool) {
	return hooks.Lookup(hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: l.hook})
}

// run lifts the hold.
func (l *lift) run(ctx context.Context, hooks *catalog.Catalog, w *liftWork) error {
	if l.ofRule() {
		if err := within(ctx, func(ctx context.Context) error { return w.checkRule(ctx, l.extension, l.hook) }); err != nil {
			return err
		}
		return w.skipHold(ctx, l.extension, l.key)
	}
	cluster, err := w.getCluster(ctx, l.key)
	if err != nil {
		return err
	}
	err = within(ctx, func(ctx context.Context) error { return w.checkHandler(ctx, l.handler, l.name, l.extension) })
	if err != nil {
		return err
	}
	entry := v1alpha1.LiftedHold{Handler: l.handler, Hook: l.hook, Cluster: l.cluster, UID: string(cluster.GetUID())}
	if h, _ := l.hookIn(hooks); needsVersion(h) {
		version, _, _ := unstructured.NestedString(cluster.Object, "spec", "topology", "version")
		if entry.Version = cmp.Or(l.version, version); entry.Version == "" {
			return fmt.Errorf("no spec.topology.version in Cluster %s: use --version to say which upgrade is held", l.cluster)
		}
	}
	policy, err := w.policyOf(ctx, l.policy, l.extension, l.name)
	if err != nil {
		return err
	}
	return w.liftWith(ctx, hooks, policy, entry)
}

// needsVersion reports whether a hold of a hook is of one upgrade.
func needsVersion(h *catalog.Hook) bool {
	_, needs := catalog.UpgradeVersionOf(h.Request.Zero().Interface())
	return needs
}

// getCluster returns a Cluster, whose uid and version a lift is for.
func (w *liftWork) getCluster(ctx context.Context, key client.ObjectKey) (*unstructured.Unstructured, error) {
	var cluster *unstructured.Unstructured
	err := within(ctx, func(ctx context.Context) (err error) {
		cluster, err = target.GetCluster(ctx, w, key)
		return err
	})
	return cluster, err
}

// skipHold adds a rule to the annotation of a Cluster that lifts holds of rules.
func (w *liftWork) skipHold(ctx context.Context, rule string, key client.ObjectKey) error {
	cluster, err := w.getCluster(ctx, key)
	if err != nil {
		return err
	}
	annotations := cluster.GetAnnotations()
	skipped := annotations[v1alpha1.SkipHoldAnnotation]
	for name := range strings.SplitSeq(skipped, ",") {
		if strings.TrimSpace(name) == rule {
			w.sayf("The annotation %s of Cluster %s has rule %s already.", v1alpha1.SkipHoldAnnotation, key, rule)
			return nil
		}
	}
	before := cluster.DeepCopy()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.SkipHoldAnnotation] = strings.TrimPrefix(skipped+","+rule, ",")
	cluster.SetAnnotations(annotations)
	w.sayf("Cluster %s gets the annotation\n  %s: %s\nAs long as the annotation exists, rule %s does not "+
		"hold the Cluster.", key, v1alpha1.SkipHoldAnnotation,
		annotations[v1alpha1.SkipHoldAnnotation], rule)
	if err := w.confirm("Lift this hold?"); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := within(ctx, func(ctx context.Context) error { return w.Patch(ctx, cluster, patch) }); err != nil {
		return fmt.Errorf("patch Cluster %s: %w", key, err)
	}
	w.sayf("Lifted: the gateway lets the Cluster go on when Cluster API calls again.")
	return nil
}
