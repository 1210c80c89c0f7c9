// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

// TestMetricsForgetAnExtensionConfig holds that the discoveries of an ExtensionConfig that is removed leave no series,
// and those of others stay.
func TestMetricsForgetAnExtensionConfig(t *testing.T) {
	gatherer := prometheus.NewRegistry()
	m := NewMetrics(gatherer, registry.New(), catalog.New(), "v1")
	outcomes := []string{discovery.OutcomeSuccess, discovery.OutcomeRefused}
	for _, kind := range hook.Kinds() {
		outcomes = append(outcomes, kind.String())
	}
	for _, extension := range []string{"gone", "stays"} {
		for _, outcome := range outcomes {
			m.Discovery(extension, outcome, time.Second)
		}
	}
	m.Forget("gone")
	for name, want := range map[string]int{"hookgate_discoveries_total": len(outcomes), "hookgate_discovery_duration_seconds": 1} {
		if got, err := testutil.GatherAndCount(gatherer, name); err != nil || got != want {
			t.Errorf("%s: %d series, %v, want %d", name, got, err, want)
		}
	}
}
