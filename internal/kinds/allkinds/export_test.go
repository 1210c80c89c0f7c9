// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds

import (
	"slices"
	"testing"

	"github.com/hookgate/hookgate/internal/kinds"
)

// Add adds a line to the table until the end of a test.
func Add(t *testing.T, k kinds.Kind, rules func(*Config) kinds.Rules, newSet func(*SetConfig) kinds.Set) {
	t.Helper()
	before := table
	table = append(slices.Clone(table), line{Kind: k, rules: rules, newSet: newSet})
	t.Cleanup(func() { table = before })
}
