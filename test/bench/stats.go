// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"
)

// percentile returns the value that p percent of the sorted values do not exceed (nearest rank), and 0 without values.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// median returns the middle value, the mean of the two middle ones where their number is even, and 0 without values.
// It leaves values in their order.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	half := len(s) / 2
	if len(s)%2 == 0 {
		return (s[half-1] + s[half]) / 2
	}
	return s[half]
}

// ratios returns each a[i]/b[i]. The rounds are interleaved, so other load in round i affects both, and cancels better
// than in a ratio of two medians. Pairs without a divisor are left out.
func ratios(a, b []float64) []float64 {
	var r []float64
	for i := range min(len(a), len(b)) {
		if b[i] > 0 {
			r = append(r, a[i]/b[i])
		}
	}
	return r
}

// agreement is how far the lowest and the highest ratio may be apart, as a part of their median, for rounds to agree.
const agreement = 0.15

// spread returns how far the lowest and the highest value are apart, as a part of their median; 0 without values.
func spread(values []float64) float64 {
	middle := median(values)
	if middle <= 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / middle
}
