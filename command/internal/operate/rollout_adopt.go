// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

func newRolloutAdoptCommand() *cobra.Command {
	var o rolloutOptions
	var candidate, group string
	var dryRun bool
	cmd := o.command(&cobra.Command{
		Use:   "adopt NAME [--candidate EXTENSIONCONFIG]",
		Short: "Make an ExtensionRollout from an ExtensionConfig that is in use",
		Long: "Create an ExtensionRollout with the name of an ExtensionConfig that is in use. That\n" +
			"ExtensionConfig becomes the stable version. The handlers keep their names, and each\n" +
			"Cluster keeps its version. With --candidate, the gateway also compares the answers of both versions\n" +
			"for each Cluster; no Cluster moves until spec.candidateFor or \"hookgate rollout approve\" allows\n" +
			"it.",
		Example: "  hookgate rollout adopt acme --dry-run\n" +
			"  hookgate rollout adopt acme --candidate acme-v7 --context management",
	}, func(ctx context.Context, r *rolloutWork) error {
		of := &v1alpha1.ExtensionRollout{Spec: v1alpha1.ExtensionRolloutSpec{
			Stable: r.name, Candidate: candidate, Compare: candidate != "",
		}}
		of.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(rollout.Kind))
		of.Name = r.name
		return r.adopt(ctx, of, group, dryRun)
	})
	f := cmd.Flags()
	f.StringVar(&candidate, "candidate", "", "ExtensionConfig of the new version")
	f.BoolVar(&dryRun, "dry-run", false, "print the ExtensionRollout, and create nothing")
	f.StringVar(&group, "extension-config-group", controllers.ClusterAPIGroup,
		"API group of the ExtensionConfigs: "+controllers.ClusterAPIGroup+" or "+controllers.HookgateGroup)
	return cmd
}

// adopt creates an ExtensionRollout whose stable member has its name.
func (r *rolloutWork) adopt(ctx context.Context, of *v1alpha1.ExtensionRollout, group string, dryRun bool) error {
	found, err := r.hasExtensionConfig(ctx, group, r.name)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("there is no ExtensionConfig %q of %s: see kubectl get extensionconfigs", r.name, group)
	}
	if dryRun {
		body, err := yaml.Marshal(map[string]any{
			"apiVersion": of.APIVersion, "kind": of.Kind, "metadata": map[string]any{"name": of.Name}, "spec": of.Spec,
		})
		if err != nil {
			return err
		}
		_, err = r.out.Write(body)
		return err
	}
	err = within(ctx, func(ctx context.Context) error { return r.Create(ctx, of) })
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("there is an %s %q already: set spec.candidate in it for a new version", rollout.Kind, r.name)
	}
	if err != nil {
		return r.failed("create", err)
	}
	r.sayf("%s %q is created: ExtensionConfig %q answers as before, under the same names.", rollout.Kind, r.name, r.name)
	if of.Spec.Candidate == "" {
		r.sayf("Next, register the new version as an ExtensionConfig of another name, and set spec.candidate to it.")
		return nil
	}
	if found, err = r.hasExtensionConfig(ctx, group, of.Spec.Candidate); err != nil {
		return err
	}
	if !found {
		r.sayf("There is no ExtensionConfig %q yet: register it.", of.Spec.Candidate)
	}
	r.sayf("Each Cluster is compared when Cluster API calls the handlers for it. No Cluster moves yet.\n"+
		"\"hookgate describe rollout %s\" shows what differs; spec.candidateFor says which Clusters may move.", r.name)
	return nil
}

// hasExtensionConfig reports whether there is an ExtensionConfig with a name.
func (r *rolloutWork) hasExtensionConfig(ctx context.Context, group, name string) (bool, error) {
	for _, version := range []string{"v1beta2", "v1alpha1"} {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: version, Kind: "ExtensionConfig"})
		err := within(ctx, func(ctx context.Context) error { return r.Get(ctx, client.ObjectKey{Name: name}, o) })
		switch {
		case err == nil:
			return true, nil
		case apierrors.IsNotFound(err):
			return false, nil
		case !meta.IsNoMatchError(err):
			return false, fmt.Errorf("get ExtensionConfig %q: %w", name, err)
		}
	}
	return false, fmt.Errorf("get ExtensionConfig %q: the cluster has no kind ExtensionConfig in the group %s; for the "+
		"other group, use --extension-config-group", name, group)
}
