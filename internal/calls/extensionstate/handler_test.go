// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensionstate

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/circuit"
)

// A handler remembers so many Clusters, the refused ones rather than others, and each for so long. Without one, it reads
// no requests.
func TestClustersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := circuit.Default()
		fail := func(c *circuit.Circuit, times int) {
			for range times {
				c.Leave(circuit.Pass{}, &settings, circuit.Failure, hook.Errorf(hook.BadResponse, "no"))
			}
		}
		var h Handler
		if h.Remembers() || h.Cluster("n/0") != nil {
			t.Error("a Cluster is remembered that did not fail")
		}
		fail(h.Failing("n/first"), 1)
		time.Sleep(time.Second)
		for i := range limits.FailingClusters {
			c := h.Failing("n/" + strconv.Itoa(i)) // the first makes room
			if c == nil {
				t.Fatalf("there is no room for Cluster %d", i)
			}
			fail(c, limits.DefaultFailuresInARow)
		}
		if h.Cluster("n/first") != nil || len(h.clusters) != limits.FailingClusters || len(h.Refused()) != limits.FailingClusters {
			t.Errorf("%d Clusters are remembered, and %d refused", len(h.clusters), len(h.Refused()))
		}
		if h.Failing("n/more") != nil {
			t.Error("there is room for more Clusters than are remembered")
		}
		if h.Cluster("n/0") == nil || !h.Remembers() {
			t.Error("a refused Cluster was forgotten")
		}
		time.Sleep(limits.FailingClusterTime)
		if h.Cluster("n/0") != nil || len(h.Refused()) != 0 || h.Failing("n/more") == nil || len(h.clusters) != 1 {
			t.Errorf("after their time, %d Clusters are remembered, and %q refused", len(h.clusters), h.Refused())
		}
		h.Succeeded("n/more")
		if h.Remembers() {
			t.Error("a Cluster is remembered whose call succeeded")
		}
	})
}
