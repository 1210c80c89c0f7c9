// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// TestLimitsPageIsCurrent compares the page with the table that it is made of.
func TestLimitsPageIsCurrent(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("..", "limits.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "limits.md")
	if err := os.WriteFile(page, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fill(page, "limits", limits.Document); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/limits.md is not what the table says: run make generate (%v)", err)
	}
}

// TestLimitsNameMetricsAndKinds checks that the metrics and the kinds of errors exist which the table names.
func TestLimitsNameMetricsAndKinds(t *testing.T) {
	var b bytes.Buffer
	if err := metrics(&b); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, kind := range hook.Kinds() {
		kinds = append(kinds, kind.String())
	}
	// States and conditions that are no kinds.
	kinds = append(kinds, "Down", "Discovered", "False", "Synced", "CredentialsNotFound", "ParametersValid")
	code, word := regexp.MustCompile("`[^`]+`"), regexp.MustCompile("^`[A-Z][A-Za-z]+`$")
	found := 0
	for _, idea := range limits.Table() {
		for _, l := range idea.Limits {
			for _, name := range code.FindAllString(l.Metric, -1) {
				if found++; !strings.Contains(b.String(), "| "+name+" |") {
					t.Errorf("%s: there is no metric %s", l.Name, name)
				}
			}
			for _, name := range code.FindAllString(l.Beyond, -1) {
				if word.MatchString(name) && !slices.Contains(kinds, strings.Trim(name, "`")) {
					t.Errorf("%s: there is no kind %s", l.Name, name)
				}
			}
		}
	}
	if found < 15 {
		t.Errorf("%d metrics were found: the table has more", found)
	}
}
