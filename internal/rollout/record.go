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
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
	"github.com/hookgate/hookgate/registry"
)

// RecordName returns the name of the record of a Cluster.
func RecordName(rollout string, of types.NamespacedName) string {
	sum := sha256.Sum256([]byte(of.String()))
	return rollout + "." + hex.EncodeToString(sum[:16])
}

// AbortedName returns the name of the record that says that no more Clusters move.
func AbortedName(rollout string) string { return rollout + ".aborted" }

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
		"more than %d %% of the last calls of %s have failed", *r.spec.Abort.ErrorPercent, r.candidate))
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

// differenceOf returns a difference as records have it.
func differenceOf(handler string, d registry.Difference) v1alpha1.RolloutDifference {
	cut := func(s string) string { return text.Cut(s, limits.RolloutValueBytes) }
	return v1alpha1.RolloutDifference{
		Handler: handler, Object: cut(d.Object), Path: cut(d.Path), Stable: cut(d.Stable), Candidate: cut(d.Candidate),
		Machines: cut(d.Machines),
	}
}
