// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/catalog"
)

const (
	urlA = "https://a.example.com"
	urlB = "https://b.example.com"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// config returns a manifest of an ExtensionConfig; more is appended to its clientConfig's URL, line by line.
func config(name, url string, more ...string) string {
	return strings.Join(append([]string{
		"apiVersion: runtime.cluster.x-k8s.io/v1beta2", "kind: ExtensionConfig", "metadata:", "  name: " + name,
		"spec:", "  clientConfig:", "    url: " + url,
	}, more...), "\n") + "\n"
}

func newDecoder(t testing.TB) *Decoder {
	t.Helper()
	d, err := NewDecoder(catalog.New())
	if err != nil {
		t.Fatal(err)
	}
	return d
}
