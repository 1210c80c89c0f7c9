// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
)

// policyOf returns the ExtensionPolicy of that name, or without one the policy whose liftedHolds apply to a handler. It
// is a new one if there is none.
func (w *liftWork) policyOf(
	ctx context.Context, name, extension, handler string,
) (*v1alpha1.ExtensionPolicy, error) {
	if name != "" {
		p := &v1alpha1.ExtensionPolicy{}
		err := within(ctx, func(ctx context.Context) error { return w.Get(ctx, client.ObjectKey{Name: name}, p) })
		if err != nil {
			return nil, fmt.Errorf("get %s %q: %w", extensionpolicy.Kind, name, err)
		}
		return p, nil
	}
	var wide, narrow []*v1alpha1.ExtensionPolicy
	list := &v1alpha1.ExtensionPolicyList{}
	for first := true; first || list.Continue != ""; first = false {
		next := list.Continue
		list = &v1alpha1.ExtensionPolicyList{}
		err := within(ctx, func(ctx context.Context) error {
			return w.List(ctx, list, client.Limit(recordsPage), client.Continue(next))
		})
		if err != nil {
			return nil, fmt.Errorf("list ExtensionPolicies: %w; use --policy to name the ExtensionPolicy to change", err)
		}
		for i := range list.Items {
			switch of := &list.Items[i]; {
			case of.Spec.TargetRef.Name != extension:
			case of.Spec.TargetRef.Handler == "":
				wide = append(wide, of)
			case of.Spec.TargetRef.Handler == handler:
				narrow = append(narrow, of)
			}
		}
	}
	return appliedTo(extension, wide, narrow), nil
}

// appliedTo returns the policy whose liftedHolds the gateway reads for a handler: its own policy if that has some, else
// the policy of the extension. A handler's policy that has none gets its first entry only if the extension has no
// policy, because that entry would replace all entries of the extension's policy for this handler.
func appliedTo(extension string, wide, narrow []*v1alpha1.ExtensionPolicy) *v1alpha1.ExtensionPolicy {
	ofExtension, ofHandler := extensionpolicy.InEffect(wide), extensionpolicy.InEffect(narrow)
	switch {
	case ofHandler != nil && (ofExtension == nil || len(ofHandler.Spec.LiftedHolds) > 0):
		return ofHandler
	case ofExtension != nil:
		return ofExtension
	}
	made := &v1alpha1.ExtensionPolicy{}
	made.Name, made.Spec.TargetRef.Name = extension, extension
	return made
}

// liftWith adds an entry to the liftedHolds of a policy, which is made if it is not stored yet.
func (w *liftWork) liftWith(
	ctx context.Context, hooks *catalog.Catalog, p *v1alpha1.ExtensionPolicy, entry v1alpha1.LiftedHold,
) error {
	if slices.Contains(p.Spec.LiftedHolds, entry) {
		w.sayf("%s %q lifts this hold already.", extensionpolicy.Kind, p.Name)
		return nil
	}
	before := p.DeepCopy()
	p.Spec.LiftedHolds = append(p.Spec.LiftedHolds, entry)
	compiler, err := policy.NewCompiler()
	if err != nil {
		return err
	}
	if _, errs := extensionpolicy.Compile(p, compiler, hooks); len(errs) > 0 {
		return fmt.Errorf("%s %q would not be valid: %w", extensionpolicy.Kind, p.Name, errs.ToAggregate())
	}
	lines, err := yaml.Marshal([]v1alpha1.LiftedHold{entry})
	if err != nil {
		return err
	}
	does := "gets this entry of spec.liftedHolds"
	if p.ResourceVersion == "" {
		does = "is created, with this entry of spec.liftedHolds"
	}
	w.sayf("%s %q %s:\n%s", extensionpolicy.Kind, p.Name, does, indented(string(lines)))
	w.sayf("%[2]s no longer holds Cluster %[1]s at %[3]s, this once.\n"+
		"The handler is still called, and others may still hold the Cluster.", entry.Cluster, entry.Handler, entry.Hook)
	if err := w.confirm("Lift this hold?"); err != nil {
		return err
	}
	err = within(ctx, func(ctx context.Context) error {
		if p.ResourceVersion == "" {
			return w.Create(ctx, p)
		}
		return w.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s %q was changed meanwhile: nothing was done; run the command again: %w",
			extensionpolicy.Kind, p.Name, err)
	case err != nil:
		return fmt.Errorf("change %s %q: %w", extensionpolicy.Kind, p.Name, err)
	}
	w.sayf("Lifted: the gateway lets the Cluster go on when Cluster API calls again.")
	return nil
}

func indented(lines string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n  ")
}
