// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gen/openapi"
)

// TestLifecycleIsCurrent compares the picture that the page and /openapi/ show with the contract.
func TestLifecycleIsCurrent(t *testing.T) {
	var want bytes.Buffer
	if err := picture(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", lifecyclePicture))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not up to date: run make generate", lifecyclePicture)
	}
	page, err := os.ReadFile(filepath.Join("..", "contract.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "("+filepath.ToSlash(lifecyclePicture)+")") {
		t.Error("docs/contract.md does not show the picture")
	}
}

// TestLifecycleRefuses draws what contradicts the contract.
func TestLifecycleRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func([]stage) []stage
		want   string
	}{
		"a hook is missing":    {func(s []stage) []stage { return s[:len(s)-1] }, "LifecycleHooksService has the hooks"},
		"a service is missing": {func(s []stage) []stage { return s[1:] }, "DiscoveryService has the hooks [Discovery], but the diagram shows []"},
		"another order":        {func(s []stage) []stage { slices.Reverse(s); return s }, "LifecycleHooksService has the hooks"},
		"no such hook":         {func(s []stage) []stage { return append(s, stage{"", []step{{hook: "BeforeCoffee"}}}) }, "the contract has no hook BeforeCoffee"},
		"holds nothing": {func(s []stage) []stage { s[2].steps[0].holds = ""; return s },
			`BeforeClusterCreate: the contract lets it hold its caller: true; the diagram shows that it holds ""`},
		"cannot hold": {func(s []stage) []stage { s[2].steps[1].holds = "all"; return s },
			`AfterControlPlaneInitialized: the contract lets it hold its caller: false; the diagram shows that it holds "all"`},
	} {
		stages := slices.Clone(lifecycle)
		for i := range stages {
			stages[i].steps = slices.Clone(stages[i].steps)
		}
		err := draw(io.Discard, catalog.New(), openapi.Document, tc.change(stages))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
