// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// stored returns a record of ns/c1 as a watch brings it.
func stored(uid, version string, state v1alpha1.RolloutState, handlers ...string) *v1alpha1.ExtensionRolloutRecord {
	r := &v1alpha1.ExtensionRolloutRecord{}
	r.Name, r.UID, r.ResourceVersion = "acme.c1", types.UID(uid), version
	r.Spec = v1alpha1.ExtensionRolloutRecordSpec{
		Rollout: "acme", Candidate: "v7", State: state, Cluster: &v1alpha1.RolloutCluster{Namespace: "ns", Name: "c1"},
	}
	for _, h := range handlers {
		r.Spec.Differences = append(r.Spec.Differences, v1alpha1.RolloutDifference{Handler: h, Path: "/spec"})
	}
	return r
}

var c1 = types.NamespacedName{Namespace: "ns", Name: "c1"}

// What a watch brings late, of this record or of one that was deleted before, does not move a Cluster back.
func TestLateWatchMovesNobodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{})
		f.Set(stored("b", "20", v1alpha1.RolloutStateMoved))
		f.Set(stored("b", "19", v1alpha1.RolloutStateEqual))
		f.Set(stored("a", "7", v1alpha1.RolloutStateEqual))
		f.Remove(stored("a", "8", v1alpha1.RolloutStateEqual))
		if !f.call("c1", "patch", equal) || f.Moved("acme")["v7"] != 1 {
			t.Error("the Cluster has moved back")
		}
		f.Remove(stored("b", "21", v1alpha1.RolloutStateMoved))
		if f.call("c1", "patch", equal) || len(f.Moved("acme")) != 0 {
			t.Error("the record is deleted, and the Cluster has not moved back")
		}
	})
}

// A difference that another replica has stored holds a Cluster, until the answers of that handler are equal here.
func TestDifferenceOfAnotherReplicaHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone}, func(c *Config) { c.Shared = true })
		record := stored("acme.c1", "1", v1alpha1.RolloutStateDifferent, "patch")
		record.Name, record.Annotations = RecordName("acme", c1), map[string]string{"kept": "yes"}
		f.store.records[record.Name] = record
		f.Set(record)
		for range 3 {
			f.call("c1", "validate", equal)
		}
		time.Sleep(2 * limits.RolloutSettle)
		for _, line := range f.store.stored() {
			if !strings.Contains(line, "Different") {
				t.Errorf("stored %q", line)
			}
		}
		f.call("c1", "patch", equal)
		synctest.Wait()
		time.Sleep(3 * limits.RolloutSettle)
		synctest.Wait()
		now := f.store.records[record.Name]
		if now.Spec.State != v1alpha1.RolloutStateMoved || now.Annotations["kept"] != "yes" {
			t.Errorf("the record is %+v", now)
		}
	})
}

// Where several processes store records, equal answers move a Cluster after a while, so that a difference that another one
// has seen comes first.
func TestEqualAnswersWaitForOtherReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone}, func(c *Config) { c.Shared = true })
		f.call("c1", "patch", equal)
		f.call("c1", "patch", equal)
		time.Sleep(limits.RolloutSettle / 2)
		f.wantStored("ns/c1 Equal: the answers are equal")
		time.Sleep(2 * limits.RolloutSettle)
		f.wantStored("ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal")
	})
}

// A Cluster of the name of one that was deleted is another one.
func TestGoneCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone})
		f.call("c2", "patch", equal)
		if records := f.Gone(types.NamespacedName{Namespace: "ns", Name: "c2"}); records != nil {
			t.Errorf("a Cluster without a record has %v", records)
		}
		f.Set(stored("a", "20", v1alpha1.RolloutStateMoved))
		if got := fmt.Sprint(f.Recorded()); got != "[ns/c1]" {
			t.Errorf("records are of %s", got)
		}
		if records := f.Gone(c1); len(records) != 1 || len(f.Moved("acme")) != 0 {
			t.Errorf("records %v, moved %v", records, f.Moved("acme"))
		}
		f.Remove(stored("a", "20", v1alpha1.RolloutStateMoved))
		if f.call("c1", "patch", equal) {
			t.Error("a new Cluster has moved")
		}
		f.call("c1", "patch", equal)
		time.Sleep(wait)
		synctest.Wait()
		if diff := cmp.Diff([]string{"ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal"}, f.store.stored()); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

// A process that only reads compares nothing.
func TestReadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone}, func(c *Config) { c.Store = nil })
		f.call("c1", "patch", equal)
		f.call("c1", "patch", equal)
		time.Sleep(2 * limits.RolloutSettle)
		f.wantStored()
		f.Set(stored("a", "20", v1alpha1.RolloutStateMoved))
		if !f.call("c1", "patch", equal) {
			t.Error("what others have stored does not count")
		}
	})
}
