// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
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
func (r *rolloutWork) policyOf(
	ctx context.Context, name, extension, handler string,
) (*v1alpha1.ExtensionPolicy, error) {
	if name != "" {
		p := &v1alpha1.ExtensionPolicy{}
		err := within(ctx, func(ctx context.Context) error { return r.Get(ctx, client.ObjectKey{Name: name}, p) })
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
			return r.List(ctx, list, client.Limit(recordsPage), client.Continue(next))
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

// appliedTo returns the policy whose liftedHolds apply: that of the handler if it has some, or else that of the
// extension. A handler's policy without any gets some only if there is no other one, because it would be in the place
// of all those of the extension.
func appliedTo(extension string, wide, narrow []*v1alpha1.ExtensionPolicy) *v1alpha1.ExtensionPolicy {
	older := func(a, b *v1alpha1.ExtensionPolicy) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	}
	slices.SortFunc(wide, older)
	slices.SortFunc(narrow, older)
	switch {
	case len(narrow) > 0 && (len(wide) == 0 || len(narrow[0].Spec.LiftedHolds) > 0):
		return narrow[0]
	case len(wide) > 0:
		return wide[0]
	}
	made := &v1alpha1.ExtensionPolicy{}
	made.Name, made.Spec.TargetRef.Name = extension, extension
	return made
}

// liftWith adds an entry to the liftedHolds of a policy, which is made if it is not stored yet.
func (r *rolloutWork) liftWith(
	ctx context.Context, hooks *catalog.Catalog, p *v1alpha1.ExtensionPolicy, entry v1alpha1.LiftedHold,
) error {
	if slices.Contains(p.Spec.LiftedHolds, entry) {
		r.sayf("%s %q lifts this hold already.", extensionpolicy.Kind, p.Name)
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
	r.sayf("%s %q %s:\n%s", extensionpolicy.Kind, p.Name, does, indented(string(lines)))
	r.sayf("Cluster %s goes on although %s holds it at %s, this once.\n"+
		"The handler is still called, and others still hold the Cluster.", entry.Cluster, entry.Handler, entry.Hook)
	if err := r.confirm("Lift this hold?"); err != nil {
		return err
	}
	err = within(ctx, func(ctx context.Context) error {
		if p.ResourceVersion == "" {
			return r.Create(ctx, p)
		}
		return r.Patch(ctx, p, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s %q was changed meanwhile: nothing was done; run the command again: %w",
			extensionpolicy.Kind, p.Name, err)
	case err != nil:
		return fmt.Errorf("change %s %q: %w", extensionpolicy.Kind, p.Name, err)
	}
	r.sayf("Lifted: the gateway lets the Cluster go on when Cluster API calls again.")
	return nil
}

func indented(lines string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n  ")
}
