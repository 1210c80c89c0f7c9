// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

func newRolloutPauseCommand() *cobra.Command {
	var o rolloutOptions
	return o.addDirectory(o.command(&cobra.Command{
		Use:   "pause NAME",
		Short: "Stop further Clusters from moving; those that have moved stay",
		Long: "Set spec.paused: no more Clusters move to the candidate. Clusters that have already moved stay on\n" +
			"the candidate; \"hookgate rollout undo\" moves them back.",
		Example: "  hookgate rollout pause acme --context management",
	}, func(ctx context.Context, r *rolloutWork) error { return r.stop(ctx) }))
}

// newRolloutAbortCommand returns a command that refuses: other tools move back what has moved by this word.
func newRolloutAbortCommand() *cobra.Command {
	return &cobra.Command{
		Use: "abort", Hidden: true, DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return cmdline.IncompleteError{Err: errors.New("say what to do: \"hookgate rollout pause\" stops further " +
				"Clusters from moving, and \"hookgate rollout undo\" moves back those that have moved")}
		},
	}
}

// stop lets no more Clusters move.
func (r *rolloutWork) stop(ctx context.Context) error {
	of, err := r.get(ctx)
	if err != nil {
		return err
	}
	if of.Spec.Paused {
		r.sayf("%s %q is paused already: nothing was changed.", rollout.Kind, r.name)
		return nil
	}
	if err := r.pause(ctx, of, true, nil); err != nil {
		return err
	}
	r.sayf("No more Clusters move. Those that have moved stay with %s: hookgate rollout undo %s moves them back,\n"+
		"and hookgate rollout resume %s lets others move again.", of.Spec.Candidate, r.name, r.name)
	return nil
}

func newRolloutResumeCommand() *cobra.Command {
	var o rolloutOptions
	return o.addDirectory(o.command(&cobra.Command{
		Use:     "resume NAME",
		Short:   "Let Clusters move again",
		Long:    "Clear spec.paused, and remove the record that says that too many calls to the candidate have failed.",
		Example: "  hookgate rollout resume acme --context management",
	}, func(ctx context.Context, r *rolloutWork) error { return r.resume(ctx) }))
}

// resume lets Clusters move again.
func (r *rolloutWork) resume(ctx context.Context) error {
	of, err := r.get(ctx)
	if err != nil {
		return err
	}
	records, err := r.records(ctx, func(string) bool { return true })
	if err != nil {
		return err
	}
	if !of.Spec.Paused && records.aborted == nil {
		r.sayf("%s %q is not paused: nothing was changed.", rollout.Kind, r.name)
		return nil
	}
	if err := r.pause(ctx, of, false, records.aborted); err != nil {
		return err
	}
	r.sayf("Clusters that are allowed to move will move again. Failed calls to the candidate are counted anew.")
	return nil
}

// pause sets spec.paused, and before that removes the record of an aborted rollout, which may be nil.
func (r *rolloutWork) pause(
	ctx context.Context, of *v1alpha1.ExtensionRollout, paused bool, aborted *v1alpha1.ExtensionRolloutRecord,
) error {
	change := func(spec *v1alpha1.ExtensionRolloutSpec) error {
		spec.Paused = paused
		return nil
	}
	var removed []*v1alpha1.ExtensionRolloutRecord
	if aborted != nil {
		removed = append(removed, aborted)
	}
	if err := r.preview(of, change, removed...); err != nil {
		return err
	}
	for _, record := range removed {
		if err := r.removeRecord(ctx, record); err != nil {
			return err
		}
	}
	return r.change(ctx, of, change)
}

// removeRecord deletes a record, which may be gone.
func (r *rolloutWork) removeRecord(ctx context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	if err := r.objects.remove(ctx, record); err != nil {
		return fmt.Errorf("delete %s %q: %w", rollout.RecordKind, record.Name, err)
	}
	return nil
}

func newRolloutUndoCommand() *cobra.Command {
	var o rolloutOptions
	var clusters []string
	cmd := o.addDirectory(o.addYes(o.command(&cobra.Command{
		Use:   "undo NAME [--cluster NAMESPACE/NAME]",
		Short: "Move Clusters back to the stable version",
		Long: "Show which Clusters have moved and what differs for them, and ask for confirmation. Then pause\n" +
			"the rollout, and move these Clusters back: the stable version answers their calls\n" +
			"immediately, and Machines that differ are replaced again. --cluster moves back only the Clusters\n" +
			"that it names.",
		Example: "  hookgate rollout undo acme --cluster team-a/prod-1 --context management\n  hookgate rollout undo acme",
	}, func(ctx context.Context, r *rolloutWork) error { return r.undo(ctx, clusters) })))
	cmd.Flags().StringArrayVar(&clusters, "cluster", nil, "a Cluster, as NAMESPACE/NAME; may be repeated")
	return cmd
}

// undo moves Clusters back, all that have moved if none are named.
func (r *rolloutWork) undo(ctx context.Context, clusters []string) error {
	of, err := r.get(ctx)
	if err != nil {
		return err
	}
	records, err := r.records(ctx, func(candidate string) bool { return candidate != of.Spec.Stable })
	if err != nil {
		return err
	}
	moved := records.in(v1alpha1.RolloutStateMoved)
	for _, name := range clusters {
		if !slices.Contains(moved, name) {
			return fmt.Errorf("undo: Cluster %s has not moved: to list the moved Clusters, run hookgate describe rollout %s",
				name, r.name)
		}
	}
	if len(clusters) > 0 {
		moved = slices.Compact(slices.Sorted(slices.Values(clusters)))
	}
	if len(moved) == 0 {
		r.sayf("No Cluster has moved.")
		return nil
	}
	r.sayf("%s back to %s, and what differs is replaced again:", text.Plural(len(moved), "Cluster")+goes(len(moved)),
		of.Spec.Stable)
	r.showAll(moved, records)
	change := func(spec *v1alpha1.ExtensionRolloutSpec) error {
		spec.Paused = true
		spec.Approved = slices.DeleteFunc(spec.Approved, func(entry string) bool { return slices.Contains(moved, entry) })
		return nil
	}
	var removed []*v1alpha1.ExtensionRolloutRecord
	for _, name := range moved {
		removed = append(removed, records.clusters[name])
	}
	if err := r.preview(of, change, removed...); err != nil {
		return err
	}
	question := fmt.Sprintf("Let no more Clusters move, and move %s back?", text.Plural(len(moved), "Cluster"))
	if err := r.confirm(question); err != nil {
		return err
	}
	if err := r.change(ctx, of, change); err != nil { // first, so that none moves again at once
		return err
	}
	for i, record := range removed {
		if err := r.removeRecord(ctx, record); err != nil {
			return fmt.Errorf("%d of %s moved back: %w; run the command again", i, text.Plural(len(moved), "Cluster"), err)
		}
	}
	r.sayf("%s back: from their next calls on, %s answers. The rollout is paused, and these Clusters\n"+
		"are no longer in spec.approved. \"hookgate rollout resume %s\" lets Clusters move again,\n"+
		"including these if spec.candidateFor or an annotation chooses them.",
		text.Plural(len(moved), "Cluster")+goes(len(moved)), of.Spec.Stable, r.name)
	return nil
}

func goes(n int) string {
	if n == 1 {
		return " goes"
	}
	return " go"
}
