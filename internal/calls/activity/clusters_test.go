// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestClustersForgetTheOldest(t *testing.T) {
	c, at := NewClusters(), time.Unix(1000, 0)
	for n := range limits.SeenClusters {
		c.Record("n", strconv.Itoa(n), at)
	}
	c.Record("n", "0", at.Add(time.Second)) // the last called now
	c.Record("n", "new", at.Add(time.Second))
	if got := c.Of("n", "1"); !got.IsZero() {
		t.Errorf("the oldest is still known: %s", got)
	}
	if got := c.Of("n", "0"); !got.Equal(at.Add(time.Second)) {
		t.Errorf("what was called again is of %s", got)
	}
	all := c.List(limits.SeenClusters + 1)
	if len(all) != limits.SeenClusters || all[0].Name != "new" || all[1].Name != "0" {
		t.Errorf("%d Clusters, %v first", len(all), all[:2])
	}
	if few := c.List(1); len(few) != 1 {
		t.Errorf("asked for one, got %d", len(few))
	}
}

func TestClustersHaveNamesOfKubernetes(t *testing.T) {
	c, at := NewClusters(), time.Unix(1000, 0)
	for _, name := range [][2]string{{"n", ""}, {strings.Repeat("n", 64), "c"}, {"n", strings.Repeat("c", 254)}} {
		c.Record(name[0], name[1], at)
	}
	if all := c.List(10); len(all) != 0 {
		t.Errorf("got %v", all)
	}
	c.Record(strings.Repeat("n", 63), strings.Repeat("c", 253), at)
	if all := c.List(10); len(all) != 1 {
		t.Errorf("got %v", all)
	}
}

func TestClustersAreLookedAtWithinABound(t *testing.T) {
	c, at, due := NewClusters(), time.Unix(1000, 0), 0
	for range 10 * limits.SeenClustersPerSecond {
		if c.Due(at) {
			due++
		}
	}
	if due != limits.SeenClustersPerSecond || !c.Due(at.Add(time.Second)) {
		t.Errorf("%d were due at once, want %d", due, limits.SeenClustersPerSecond)
	}
}
