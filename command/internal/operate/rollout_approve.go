// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/target"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// approval are the flags of hookgate rollout approve.
type approval struct {
	clusters              []string
	all, variables, force bool
}

func newRolloutApproveCommand() *cobra.Command {
	var o rolloutOptions
	var a approval
	cmd := o.addDirectory(o.addYes(o.command(&cobra.Command{
		Use:   "approve NAME --cluster NAMESPACE/NAME | --all | --variables",
		Short: "Let Clusters move although the versions answer differently for them",
		Long: "Show what differs for Clusters, ask for confirmation, and add the Clusters to spec.approved:\n" +
			"they move to the candidate regardless of spec.candidateFor. --variables approves differences in the\n" +
			"answers to calls that do not concern a Cluster, such as DiscoverVariables: until these\n" +
			"differences are approved, the candidate cannot be promoted.",
		Example: "  hookgate rollout approve acme --cluster team-a/prod-1 --context management\n" +
			"  hookgate rollout approve acme --variables --yes\n" +
			"  hookgate rollout approve acme --cluster team-a/prod-1 --extension-configs manifests --state-dir state",
	}, a.approve)))
	f := cmd.Flags()
	f.StringArrayVar(&a.clusters, "cluster", nil, "a Cluster, as NAMESPACE/NAME; may be repeated")
	f.BoolVar(&a.all, "all", false, "approve all Clusters, including those not compared yet")
	f.BoolVar(&a.variables, "variables", false, "approve the answers to calls that do not concern a Cluster, "+
		"such as DiscoverVariables")
	f.BoolVar(&a.force, "force", false,
		"approve the Clusters in --cluster even if the versions have not been compared for these Clusters")
	return cmd
}

// approve shows what is approved, asks, and does it.
func (a *approval) approve(ctx context.Context, r *rolloutWork) error {
	approved, err := a.entries()
	if err != nil {
		return err
	}
	of, err := r.getWithCandidate(ctx)
	if err != nil {
		return err
	}
	records, err := r.records(ctx, func(candidate string) bool { return candidate == of.Spec.Candidate })
	if err != nil {
		return err
	}
	if err := a.check(ctx, r, of, records); err != nil {
		return err
	}
	a.show(r, records)
	change := func(spec *v1alpha1.ExtensionRolloutSpec) error {
		for _, entry := range approved {
			if !slices.Contains(spec.Approved, entry) {
				spec.Approved = append(spec.Approved, entry)
			}
		}
		if n := len(spec.Approved); n > limits.RolloutApproved {
			return fmt.Errorf("spec.approved would have %d entries, but has room for %d: use --all, or give Clusters the "+
				"annotation %s: %s", n, limits.RolloutApproved, v1alpha1.ApproveRolloutAnnotation, spec.Candidate)
		}
		return nil
	}
	if err := r.preview(of, change); err != nil {
		return err
	}
	if err := r.confirm(fmt.Sprintf("Approve the answers of %s?", of.Spec.Candidate)); err != nil {
		return err
	}
	if err := r.change(ctx, of, change); err != nil {
		return err
	}
	r.sayf("Approved.")
	if a.all || len(a.clusters) > 0 {
		r.sayf("Each Cluster moves to %s once all handlers that are called for it have been compared, after\n"+
			"Cluster API has reconciled the Cluster. \"hookgate describe rollout %s\" shows this.", of.Spec.Candidate, r.name)
		r.sayStops(of, records)
	}
	return nil
}

// entries returns what spec.approved is to have.
func (a *approval) entries() ([]string, error) {
	for _, of := range a.clusters {
		if _, err := target.ParseCluster(of); err != nil {
			return nil, err
		}
	}
	entries := slices.Clone(a.clusters)
	if a.all {
		entries = append(entries, rollout.All)
	}
	if a.variables {
		entries = append(entries, rollout.None)
	}
	if len(entries) == 0 {
		return nil, cmdline.Usagef("say what to approve: --cluster NAMESPACE/NAME, --all or --variables")
	}
	return entries, nil
}

// check refuses to approve Clusters that have not been compared, so that no user has seen what differs for them.
func (a *approval) check(
	ctx context.Context, r *rolloutWork, of *v1alpha1.ExtensionRollout, records *rolloutRecords,
) error {
	if a.force {
		return nil
	}
	for _, name := range a.clusters {
		if records.clusters[name] != nil {
			continue
		}
		if r.isMissing(ctx, name) {
			return fmt.Errorf("approve: there is no Cluster %s", name)
		}
		return fmt.Errorf("approve: Cluster %s has not been compared with %s: %swait until Cluster API has reconciled it, "+
			"or use --force", name, of.Spec.Candidate, firstCompare(of))
	}
	return nil
}

// isMissing reports whether it is known that there is no Cluster of a name, which is NAMESPACE/NAME.
func (r *rolloutWork) isMissing(ctx context.Context, name string) bool {
	key, err := target.ParseCluster(name)
	if err != nil || r.Client == nil { // a directory does not say which Clusters there are
		return false
	}
	err = within(ctx, func(ctx context.Context) error {
		_, err := target.GetCluster(ctx, r.Client, key)
		return err
	})
	return apierrors.IsNotFound(err)
}

// firstCompare says what comes before the wait for a comparison, if anything does.
func firstCompare(of *v1alpha1.ExtensionRollout) string {
	if of.Spec.Compare {
		return ""
	}
	return "set spec.compare, and "
}

// show says what differs for what is approved.
func (a *approval) show(r *rolloutWork, records *rolloutRecords) {
	for _, name := range a.clusters {
		r.show("Cluster "+name, records.clusters[name])
	}
	if a.all {
		different := records.in(v1alpha1.RolloutStateDifferent)
		r.sayf("All Clusters, of which %d are known to be different:", len(different))
		r.showAll(different, records)
	}
	if a.variables {
		r.show("Calls about no Cluster", records.variables)
	}
}

// sayStops says what keeps all Clusters from moving.
func (r *rolloutWork) sayStops(of *v1alpha1.ExtensionRollout, records *rolloutRecords) {
	if of.Spec.Paused || records.aborted != nil {
		r.sayf("No Cluster moves now, because the rollout is paused or aborted: run hookgate rollout resume %s", r.name)
	}
}
