// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestHoldsOfReplicas checks which of two replicas counts, when one has not been asked for a while.
func TestHoldsOfReplicas(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(1_800_000_000+int64(seconds), 0) }
	hold := func(cluster, message string, since, last int) Hold {
		return Hold{Namespace: "team", Cluster: cluster, Hook: "BeforeClusterUpgrade", Handler: "job.backup", Message: message, Since: at(since), Last: at(last)}
	}
	release := func(cluster string, after int) Release {
		return Release{Namespace: "team", Cluster: cluster, Hook: "BeforeClusterUpgrade", Handler: "job.backup", At: at(after)}
	}
	one := &Gateway{MissedHolds: 1, Holds: []Hold{hold("both", "old", 10, 20), hold("released", "", 0, 30), hold("alone", "", 5, 6), hold("again", "", 0, 90)}}
	other := &Gateway{MissedHolds: 2, Holds: []Hold{hold("both", "new", 15, 40)}, Released: []Release{release("released", 31), release("again", 50)}}
	part := hold("released", "of another part", 50, 50) // which nobody has released
	part.Object, part.Last = `MachineDeployment "md"`, at(20)
	other.Holds = append(other.Holds, part)
	want := []Hold{hold("again", "", 0, 90), hold("alone", "", 5, 6), hold("both", "new", 10, 40), part}
	for name, replicas := range map[string][]*Gateway{"one first": {one, other}, "other first": {other, one}} {
		holds, missed := HoldsOf(replicas)
		if diff := cmp.Diff(want, holds); diff != "" || missed != 3 {
			t.Errorf("%s: %d are missed; -want +got\n%s", name, missed, diff)
		}
	}
}
