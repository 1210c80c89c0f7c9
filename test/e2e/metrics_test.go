// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// sample is one counter of a program, with its labels.
type sample struct {
	labels map[string]string
	value  int
}

// scrape returns the counters of that name.
func (s *server) scrape(t *testing.T, name string) []sample {
	t.Helper()
	url := "http://" + loopback(s.diagnostics) + "/metrics"
	r, err := http.Get(url)
	if err != nil {
		t.Fatalf("scrape: %v", err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("scrape %s: %s", url, r.Status)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r.Body)
	if err != nil {
		t.Fatalf("scrape %s: %v", url, err)
	}
	var list []sample
	for _, m := range families[name].GetMetric() {
		c := sample{labels: map[string]string{}, value: int(m.GetCounter().GetValue())}
		for _, l := range m.GetLabel() {
			c.labels[l.GetName()] = l.GetValue()
		}
		list = append(list, c)
	}
	return list
}

// total adds up the counters that have these labels, given as name, value, name, value.
func total(list []sample, labels ...string) int {
	sum := 0
next:
	for _, s := range list {
		for i := 0; i < len(labels); i += 2 {
			if s.labels[labels[i]] != labels[i+1] {
				continue next
			}
		}
		sum += s.value
	}
	return sum
}
