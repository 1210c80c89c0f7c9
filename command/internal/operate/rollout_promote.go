// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

func newRolloutPromoteCommand() *cobra.Command {
	var o rolloutOptions
	var force bool
	cmd := o.addDirectory(o.addYes(o.command(&cobra.Command{
		Use:   "promote NAME",
		Short: "Make the candidate stable, for all Clusters",
		Long: "Show how many Clusters change versions, ask for confirmation, and make the candidate the\n" +
			"stable version: from then on, this version answers the calls for all Clusters. spec.candidate,\n" +
			"candidateFor, approved and paused are cleared. The command refuses if a Cluster has not\n" +
			"moved, is not approved, and either differs or has not been compared. The command also refuses if\n" +
			"differences in variables are not approved.",
		Example: "  hookgate rollout promote acme --context management\n" +
			"  hookgate rollout promote acme --extension-configs manifests --state-dir state",
	}, func(ctx context.Context, r *rolloutWork) error { return r.promote(ctx, force) })))
	cmd.Flags().BoolVar(&force, "force", false, "promote even if Clusters have differences that are not approved, "+
		"if Clusters have not been compared, or if the rollout is aborted")
	return cmd
}

// promotion is what it means to promote a candidate.
type promotion struct {
	moved, equal, approved int
	held                   []string // Clusters that differ, and are neither moved nor approved
	unknown                int      // Clusters that were not compared
	uncounted              error    // why these are not known
}

// promote makes the candidate stable.
func (r *rolloutWork) promote(ctx context.Context, force bool) error {
	of, err := r.getWithCandidate(ctx)
	if err != nil {
		return err
	}
	records, err := r.records(ctx, func(candidate string) bool { return candidate == of.Spec.Candidate })
	if err != nil {
		return err
	}
	p, err := r.whatPromotes(ctx, of, records)
	if err != nil {
		return err
	}
	r.sayf("%s becomes stable in place of %s, for all Clusters:\n"+
		"  %d have it already\n  %d change, with equal answers\n  %d change, with differences that are approved",
		of.Spec.Candidate, of.Spec.Stable, p.moved, p.equal, p.approved)
	if len(p.held) > 0 {
		r.sayf("  %d change, with differences that are not approved:", len(p.held))
		r.showAll(p.held, records)
	}
	switch {
	case p.uncounted != nil:
		r.sayf("  all that were not compared also change, but their number is not known: %s", p.uncounted)
	case p.unknown > 0:
		r.sayf("  %d change, and were not compared", p.unknown)
	}
	if err := p.refuse(of, records, force); err != nil {
		return err
	}
	change := func(spec *v1alpha1.ExtensionRolloutSpec) error {
		spec.Stable, spec.Candidate, spec.CandidateFor, spec.Approved, spec.Paused = spec.Candidate, "", nil, nil, false
		return nil
	}
	if err := r.preview(of, change); err != nil {
		return err
	}
	if err := r.confirm("Promote " + of.Spec.Candidate + "?"); err != nil {
		return err
	}
	if err := r.change(ctx, of, change); err != nil {
		return err
	}
	r.sayf("%s is stable. ExtensionConfig %q is not called any more, and may be deleted.\n"+
		"To go back, set spec.candidate to it, and move Clusters as before.", of.Spec.Candidate, of.Spec.Stable)
	return nil
}

// refuse returns why a candidate is not promoted.
func (p *promotion) refuse(of *v1alpha1.ExtensionRollout, records *rolloutRecords, force bool) error {
	var errs []error
	if records.variablesDiffer() && !slices.Contains(of.Spec.Approved, rollout.None) {
		errs = append(errs, fmt.Errorf("the answers to calls that do not concern a Cluster, such as DiscoverVariables, "+
			"differ: hookgate describe rollout %s shows the differences, and hookgate rollout approve %s --variables "+
			"approves them", of.Name, of.Name))
	}
	if !force && records.aborted != nil {
		errs = append(errs, fmt.Errorf("the rollout is aborted, because %s: fix that, then run hookgate rollout resume %s; "+
			"or use --force", records.aborted.Spec.Message, of.Name))
	}
	if !force && len(p.held) > 0 {
		errs = append(errs, fmt.Errorf("the changes of %s are not approved: run hookgate rollout approve %s; or use "+
			"--force", text.Plural(len(p.held), "Cluster"), of.Name))
	}
	if !force && (p.unknown > 0 || p.uncounted != nil && !errors.Is(p.uncounted, errNoClusters)) {
		errs = append(errs, fmt.Errorf("not all Clusters have been compared: %swait until Cluster API has reconciled them; "+
			"or use --force", firstCompare(of)))
	}
	if len(errs) > 0 {
		return fmt.Errorf("promote %s %q: %w", rollout.Kind, of.Name, errors.Join(errs...))
	}
	return nil
}

// whatPromotes counts the Clusters that change.
func (r *rolloutWork) whatPromotes(
	ctx context.Context, of *v1alpha1.ExtensionRollout, records *rolloutRecords,
) (*promotion, error) {
	p := &promotion{
		moved: len(records.in(v1alpha1.RolloutStateMoved)), equal: len(records.in(v1alpha1.RolloutStateEqual)),
	}
	annotated := map[string]bool{}
	there := map[string]bool{}
	p.uncounted = r.objects.clusters(ctx, func(name string, o *unstructured.Unstructured) {
		there[name] = true
		annotated[name] = o.GetAnnotations()[v1alpha1.ApproveRolloutAnnotation] == of.Spec.Candidate
		if topology, ok, _ := unstructured.NestedMap(o.Object, "spec", "topology"); ok && len(topology) > 0 &&
			records.clusters[name] == nil {
			p.unknown++
		}
	})
	for _, name := range records.in(v1alpha1.RolloutStateDifferent) {
		switch {
		case p.uncounted == nil && !there[name]: // it is deleted
		case annotated[name], slices.Contains(of.Spec.Approved, name), slices.Contains(of.Spec.Approved, rollout.All):
			p.approved++
		default:
			p.held = append(p.held, name)
		}
	}
	return p, ctx.Err()
}
