// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestComparison(t *testing.T) {
	then := "| bar | measured (min–max) | limit | |\n|---|---|---|---|\n" +
		"| rate: S | 1.25 (1.19–1.28) | ≥ 1.10 | PASS |\n| rate: M | 0.86 (0.85–0.87) | ≥ 1.00 | BELOW |\n" +
		"| memory: L | 1.70 (1.65–1.74) | ≤ 1.60 | BELOW |\n| rate: L | 0.71 (0.69–0.72) | ≥ 1.00 | BELOW |\n" +
		"| a bar that was left out | 1 (1–1) | ≥ 1.00 | PASS |\n"
	now := strings.NewReplacer(
		"0.86 (0.85–0.87)", "0.98 (0.95–1.02)", "1.70 (1.65–1.74)", "1.90 (1.80–1.94)", "1.25 (1.19–1.28)", "1.30 (1.27–1.31)",
		"a bar that was left out", "a bar that was added", "0.71 (0.69–0.72)", "0.60 (0.59–0.62)",
	).Replace(then)
	const want = "| bar | then | now | |\n|---|---|---|---|\n| rate: S | 1.25 | 1.30 |  |\n| rate: M | 0.86 | 0.98 | better |\n" +
		"| memory: L | 1.70 | 1.90 | worse |\n| rate: L | 0.71 | 0.60 | worse |\n| a bar that was added | - | 1 | new |\n" +
		"| a bar that was left out | 1 | - | gone |\n"
	if got, err := comparison(then, now); err != nil || got != want {
		t.Errorf("%v: got\n%swant\n%s", err, got, want)
	}
	if got, err := comparison("nothing", now); err == nil {
		t.Errorf("without bars: %s", got)
	}
}

// All bars of the page are found, so that none is left out of a comparison.
func TestBarsOfThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "performance", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| bar | measured")
	table, _, _ = strings.Cut(table, "\n\n")
	bars, err := barsOf(string(page))
	if want := strings.Count(table, "\n") - 1; err != nil || len(bars) != want {
		t.Errorf("%d bars, %v, want %d", len(bars), err, want)
	}
}
