// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
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
	// version is the version of an upgrade; empty for that of the Cluster.
	version string
	// policy is the ExtensionPolicy that lifts it; empty for the one that applies.
	policy string
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
			"command shows what it will change, and asks for confirmation. For the handler of an extension, it adds\n" +
			"an entry to spec.liftedHolds of the ExtensionPolicy that applies, or of a new ExtensionPolicy. The entry\n" +
			"is valid for one upgrade, creation or deletion. For a HookRule, rule.NAME, it adds an annotation to the\n" +
			"Cluster; the annotation also lifts later holds of the rule.",
		Example: "  hookgate lift before-delete.volumes --hook BeforeClusterDelete --cluster team-a/prod-1\n" +
			"  hookgate lift rule.business-hours --cluster team-a/prod-1 --context management",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cmdline.Usagef("want the name of one handler, see \"hookgate get holds\"; got %d names", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := kube.Load()
			if err != nil {
				return err
			}
			c, err := newClient(config)
			if err != nil {
				return err
			}
			of.handler = args[0]
			return of.run(cmd.Context(), hooks, &rolloutWork{
				Client: c, objects: clusterRollouts{c}, name: args[0], in: cmd.InOrStdin(), out: cmd.OutOrStdout(), yes: yes,
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&of.cluster, "cluster", "", "the Cluster, as NAMESPACE/NAME")
	f.StringVar(&of.hook, "hook", "", "hook at which the Cluster waits, such as BeforeClusterUpgrade")
	f.StringVar(&of.version, "version", "",
		"version of Kubernetes to which the held upgrade would bring the Cluster; by default "+
			"spec.topology.version of the Cluster")
	f.StringVar(&of.policy, "policy", "", "ExtensionPolicy to change; by default the one that applies to the handler")
	f.BoolVarP(&yes, "yes", "y", false, "skip the confirmation")
	kube.AddFlags(f)
	cmdline.CompleteFlags(cmd, map[string]cmdline.Completion{"context": target.CompleteContexts(&kube)})
	return cmd
}

// run lifts the hold. r says what is done, and asks.
func (l *lift) run(ctx context.Context, hooks *catalog.Catalog, r *rolloutWork) error {
	handler, extension, ok := strings.Cut(l.handler, ".")
	if !ok || handler == "" || extension == "" {
		return cmdline.Usagef("want a handler as \"hookgate get holds\" shows it, such as before-delete.acme; got %q",
			text.Cut(l.handler, limits.QuotedBytes))
	}
	namespace, name, ok := strings.Cut(l.cluster, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return cmdline.Usagef("--cluster: want NAMESPACE/NAME, got %q", text.Cut(l.cluster, limits.QuotedBytes))
	}
	if handler == hookrule.HandlerName {
		return r.skipHold(ctx, extension, client.ObjectKey{Namespace: namespace, Name: name})
	}
	h, ok := hooks.Lookup(hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: l.hook})
	if !ok || !h.Liftable() {
		return cmdline.Usagef("--hook: want the lifecycle hook at which the Cluster waits, see \"hookgate get holds\"; "+
			"got %q", text.Cut(l.hook, limits.QuotedBytes))
	}
	cluster, err := r.getCluster(ctx, client.ObjectKey{Namespace: namespace, Name: name})
	if err != nil {
		return err
	}
	entry := v1alpha1.LiftedHold{Handler: l.handler, Hook: l.hook, Cluster: l.cluster, UID: string(cluster.GetUID())}
	if _, needs := catalog.UpgradeVersionOf(h.Request.Zero().Interface()); needs {
		version, _, _ := unstructured.NestedString(cluster.Object, "spec", "topology", "version")
		if entry.Version = cmp.Or(l.version, version); entry.Version == "" {
			return fmt.Errorf("no spec.topology.version in Cluster %s: use --version to say which upgrade is held", l.cluster)
		}
	}
	policy, err := r.policyOf(ctx, l.policy, extension, handler)
	if err != nil {
		return err
	}
	return r.liftWith(ctx, hooks, policy, entry)
}

// getCluster returns a Cluster, whose uid and version a lift is for.
func (r *rolloutWork) getCluster(ctx context.Context, key client.ObjectKey) (*unstructured.Unstructured, error) {
	var err error
	for _, version := range []string{"v1beta2", "v1beta1"} {
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: version, Kind: "Cluster"})
		err = within(ctx, func(ctx context.Context) error { return r.Get(ctx, key, o) })
		if err == nil {
			return o, nil
		}
		if !meta.IsNoMatchError(err) {
			break
		}
	}
	return nil, fmt.Errorf("get Cluster %s: %w", key, err)
}

// skipHold adds a rule to the annotation of a Cluster that lifts holds of rules.
func (r *rolloutWork) skipHold(ctx context.Context, rule string, key client.ObjectKey) error {
	cluster, err := r.getCluster(ctx, key)
	if err != nil {
		return err
	}
	annotations := cluster.GetAnnotations()
	skipped := annotations[v1alpha1.SkipHoldAnnotation]
	for name := range strings.SplitSeq(skipped, ",") {
		if strings.TrimSpace(name) == rule {
			r.sayf("The annotation %s of Cluster %s has rule %s already.", v1alpha1.SkipHoldAnnotation, key, rule)
			return nil
		}
	}
	before := cluster.DeepCopy()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.SkipHoldAnnotation] = strings.TrimPrefix(skipped+","+rule, ",")
	cluster.SetAnnotations(annotations)
	r.sayf("Cluster %s gets the annotation\n  %s: %s\nIt goes on although rule %s holds it, and at later holds of the "+
		"rule, too, until the\nannotation is removed.", key, v1alpha1.SkipHoldAnnotation,
		annotations[v1alpha1.SkipHoldAnnotation], rule)
	if err := r.confirm("Lift this hold?"); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := within(ctx, func(ctx context.Context) error { return r.Patch(ctx, cluster, patch) }); err != nil {
		return fmt.Errorf("patch Cluster %s: %w", key, err)
	}
	r.sayf("Lifted: the gateway lets the Cluster go on when Cluster API calls again.")
	return nil
}

// newClient returns a client of the API server for Hookgate's kinds.
func newClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: scheme})
}
