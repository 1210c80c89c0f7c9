// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/kinds/owner"
	"github.com/hookgate/hookgate/registry"
)

// longestName leaves room in the name of a file for what is put before and behind the name of a record.
const longestName = 220

// RecordName returns the name of the record of a Cluster: ROLLOUT.NAMESPACE.NAME, with a hash in the place of both if
// that is too long for a file. Neither of the first two has a dot. The record of calls about no Cluster is
// ROLLOUT.variables.
func RecordName(rollout string, of types.NamespacedName) string {
	if of.Name == "" {
		return owner.RecordName(rollout + ".variables")
	}
	name := rollout + "." + of.Namespace + "." + of.Name
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(of.String()))
		name = rollout + "." + hex.EncodeToString(sum[:16])
	}
	return owner.RecordName(name)
}

// AbortedName returns the name of the record that says that no more Clusters move.
func AbortedName(rollout string) string { return owner.RecordName(rollout + ".aborted") }

// clusterOf returns the Cluster of a record.
func clusterOf(r *v1alpha1.ExtensionRolloutRecord) types.NamespacedName {
	if r.Spec.Cluster == nil {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: r.Spec.Cluster.Namespace, Name: r.Spec.Cluster.Name}
}

// record returns a record of a Cluster.
func (r *Rollout) record(
	of types.NamespacedName, s v1alpha1.RolloutState, message string, differences []v1alpha1.RolloutDifference,
	omitted int,
) *v1alpha1.ExtensionRolloutRecord {
	record := r.newRecord(RecordName(r.name, of), s, message)
	if of.Name != "" {
		record.Namespace = of.Namespace
		record.Spec.Cluster = &v1alpha1.RolloutCluster{Namespace: of.Namespace, Name: of.Name}
	}
	record.Spec.Differences = differences
	if omitted > 0 {
		n := int32(omitted)
		record.Spec.OmittedDifferences = &n
	}
	return record
}

// abortedRecord returns the record that says that no more Clusters move.
func (r *Rollout) abortedRecord() *v1alpha1.ExtensionRolloutRecord {
	return r.newRecord(AbortedName(r.name), v1alpha1.RolloutStateAborted, fmt.Sprintf(
		"more than %d %% of the last calls to %s have failed", *r.spec.Abort.ErrorPercent, r.candidate))
}

func (r *Rollout) newRecord(name string, s v1alpha1.RolloutState, message string) *v1alpha1.ExtensionRolloutRecord {
	record := &v1alpha1.ExtensionRolloutRecord{
		Spec: v1alpha1.ExtensionRolloutRecordSpec{
			Rollout: r.name, Candidate: r.candidate, State: s, Message: message,
			Since: metav1.NewTime(time.Now().UTC().Truncate(time.Second)),
		},
	}
	record.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(RecordKind))
	record.Name = name
	return record
}

// differencesOf returns what a comparison has shown as records have it: nothing for equal answers.
func differencesOf(k ask, c *registry.Compared) (differences []v1alpha1.RolloutDifference, omitted int) {
	if c.Unproven != "" {
		return []v1alpha1.RolloutDifference{unproven(k, c.Unproven)}, 0
	}
	omitted = c.Omitted
	size := 0
	for _, d := range c.Differences {
		cut := func(s string) string {
			s = text.Cut(s, limits.RolloutValueBytes)
			size += len(s)
			return s
		}
		one := v1alpha1.RolloutDifference{
			Handler: k.handler, Question: k.question, Object: cut(d.Object), Path: cut(d.Path), Stable: cut(d.Stable),
			Candidate: cut(d.Candidate), Machines: cut(d.Machines),
		}
		if len(differences) == limits.RolloutDifferences || size > limits.RolloutDifferencesBytes {
			omitted++
			continue
		}
		differences = append(differences, one)
	}
	return differences, omitted
}

// unproven returns what stands for answers that are no evidence, and why.
func unproven(k ask, why string) v1alpha1.RolloutDifference {
	why = text.Cut(why, limits.RolloutValueBytes)
	return v1alpha1.RolloutDifference{Handler: k.handler, Question: k.question, Stable: why, Candidate: why}
}

// isUnproven reports whether a difference stands for answers that are no evidence.
func isUnproven(d v1alpha1.RolloutDifference) bool {
	return d.Object == "" && d.Path == "" && d.Stable != "" && d.Stable == d.Candidate
}
