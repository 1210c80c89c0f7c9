// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// recordsPage is how many records are read at once.
const recordsPage = 500

// rolloutRecords are the records of an ExtensionRollout and its candidate.
type rolloutRecords struct {
	// clusters are those of Clusters, by namespace and name.
	clusters map[string]*v1alpha1.ExtensionRolloutRecord
	// variables is the one about calls about no Cluster, and aborted says that no more Clusters move; they may be nil.
	variables, aborted *v1alpha1.ExtensionRolloutRecord
}

// records returns the records of the ExtensionRollout that are about a candidate.
func (r *rolloutWork) records(ctx context.Context, isMeant func(candidate string) bool) (*rolloutRecords, error) {
	all := &rolloutRecords{clusters: map[string]*v1alpha1.ExtensionRolloutRecord{}}
	err := r.objects.records(ctx, func(record *v1alpha1.ExtensionRolloutRecord) {
		if record.Spec.Rollout != r.name || !isMeant(record.Spec.Candidate) || len(all.clusters) > limits.RolloutClusters {
			return
		}
		of := record.Spec.Cluster
		switch {
		case record.Spec.State == v1alpha1.RolloutStateAborted:
			all.aborted = record
		case of == nil:
			all.variables = record
		default:
			all.clusters[of.Namespace+"/"+of.Name] = record
		}
	})
	if err == nil && len(all.clusters) > limits.RolloutClusters {
		err = fmt.Errorf("list %ss: %s %q has records of more than %d Clusters", rollout.RecordKind, rollout.Kind,
			r.name, limits.RolloutClusters)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// in returns the Clusters of which the records have a state, in order.
func (all *rolloutRecords) in(state v1alpha1.RolloutState) (clusters []string) {
	for name, record := range all.clusters {
		if record.Spec.State == state {
			clusters = append(clusters, name)
		}
	}
	slices.Sort(clusters)
	return clusters
}

// variablesDiffer reports whether the answers to calls that do not concern a Cluster differ.
func (all *rolloutRecords) variablesDiffer() bool {
	return all.variables != nil && all.variables.Spec.State == v1alpha1.RolloutStateDifferent
}

// show says what differs for a Cluster, and what that does to its Machines.
func (r *rolloutWork) show(name string, record *v1alpha1.ExtensionRolloutRecord) {
	if record == nil {
		r.sayf("%s: not compared", name)
		return
	}
	r.sayf("%s: %s", name, strings.ToLower(string(record.Spec.State))+", "+cmp.Or(record.Spec.Message, "no reason"))
	of := rollout.Shown(record)
	for _, machines := range printers.MachinesOf(of.Differences) {
		r.sayf("  %s", machines)
	}
	for i := range of.Differences {
		d := &of.Differences[i]
		r.sayf("  %s: %s", d.Handler, printers.Difference(d))
	}
	if of.OmittedDifferences > 0 {
		r.sayf("  and %d more", of.OmittedDifferences)
	}
}

// showAll shows Clusters, as many as people read.
func (r *rolloutWork) showAll(names []string, records *rolloutRecords) {
	for _, name := range names[:min(len(names), limits.StatusRolloutExamples)] {
		r.show("Cluster "+name, records.clusters[name])
	}
	if more := len(names) - limits.StatusRolloutExamples; more > 0 {
		r.sayf("and %s more: %s", text.Plural(more, "Cluster"), r.objects.recordsAt())
	}
}
