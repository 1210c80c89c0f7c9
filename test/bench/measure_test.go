// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for name, tc := range map[string]struct {
		reason string
		sorted []time.Duration
		p      float64
		want   time.Duration
	}{
		"None":      {reason: "a round without calls has no latency", p: 50, want: 0},
		"One":       {reason: "the only value is every percentile", sorted: []time.Duration{7}, p: 99, want: 7},
		"Median":    {reason: "half of the values do not exceed it", sorted: hundred, p: 50, want: 50},
		"High":      {reason: "99 of 100 values do not exceed it", sorted: hundred, p: 99, want: 99},
		"Top":       {reason: "all values do not exceed it", sorted: hundred, p: 100, want: 100},
		"Bottom":    {reason: "the rank is at least 1", sorted: hundred, p: 0, want: 1},
		"RankIsUp":  {reason: "2 of 3 values are fewer than 99 percent", sorted: []time.Duration{1, 2, 9}, p: 99, want: 9},
		"OddMedian": {reason: "the middle one of three", sorted: []time.Duration{1, 2, 9}, p: 50, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentile(tc.sorted, tc.p); got != tc.want {
				t.Errorf("%s: percentile(%v) = %d, want %d", tc.reason, tc.p, got, tc.want)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		values []float64
		want   float64
	}{
		"None":  {reason: "nothing was measured", want: 0},
		"One":   {reason: "a value agrees with itself", values: []float64{3}, want: 0},
		"Wide":  {reason: "from 1 to 3, around 2", values: []float64{2, 3, 1}, want: 1},
		"Zeros": {reason: "no median to compare with", values: []float64{0, 0, 1}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := spread(tc.values); got != tc.want {
				t.Errorf("%s: spread(%v) = %v, want %v", tc.reason, tc.values, got, tc.want)
			}
		})
	}
}
