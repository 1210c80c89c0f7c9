// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

// The timeout that Discovery announces leaves room for the margin, in whole seconds and never more than 30.
func TestOuterTimeoutAtItsLimits(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Second: 2 * time.Second, 500 * time.Millisecond: time.Second, 501 * time.Millisecond: 2 * time.Second, 1: time.Second,
		28500 * time.Millisecond: 29 * time.Second, 28500*time.Millisecond + 1: 30 * time.Second, 29 * time.Second: 30 * time.Second,
		29500 * time.Millisecond: 30 * time.Second, 29500*time.Millisecond + 1: 30 * time.Second, 30 * time.Second: 30 * time.Second,
	} {
		if got := outerTimeout(timeout); got != want {
			t.Errorf("for a handler of %s, discovery has a timeout of %s, want %s", timeout, got, want)
		}
	}
}

// TestOldestClusterAPI wants each release of Cluster API to know all hooks that are offered without any extension, from the
// one on that the page about clusterctl names: a core refuses an answer with a hook that it does not know.
func TestOldestClusterAPI(t *testing.T) {
	hooks := catalog.New()
	asked, _ := hooks.ByName("Discovery")
	answer := Offers{Catalog: hooks}.Discovery(registry.New(hooks.Merged()...).Snapshot(), asked, "")
	oldest := ""
	for _, release := range catalog.ClusterAPIReleases() {
		knows := true
		for _, h := range catalog.HandlersOf(answer) {
			_, known := release.Hook(h.GetRequestHook().GetHook())
			knows = knows && known
		}
		switch {
		case knows && oldest == "":
			oldest = release.Name
		case !knows && oldest != "":
			t.Errorf("%s knows fewer hooks than %s", release.Name, oldest)
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "clusterctl.md"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), " ") // without its line breaks
	if want := "needs Cluster API " + oldest + " or later"; oldest == "" || !strings.Contains(text, want) {
		t.Errorf("docs/clusterctl.md does not say %q", want)
	}
}
