// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allkinds_test

import (
	"testing"

	"github.com/hookgate/hookgate/internal/base/leaktest"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/registry"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const urlA = "https://a.example.com"

// items returns what a source has of objects, which are in effect, and of mistakes, by name.
func items[C any](objects []C, mistakes map[string]string) []kinds.Item {
	var all []kinds.Item
	seen := map[string]bool{}
	for _, o := range objects {
		name := ""
		switch o := any(o).(type) {
		case extensionpolicy.Policy:
			name = o.Name
		case registry.Chain:
			name = o.Name
		case registry.Registration:
			name = o.Name
		case registry.Rollout:
			name = o.Name
		}
		seen[name] = true
		all = append(all, kinds.Item{Name: name, Compiled: o, Mistake: mistakes[name]})
	}
	for name, mistake := range mistakes {
		if !seen[name] {
			all = append(all, kinds.Item{Name: name, Mistake: mistake})
		}
	}
	return all
}
