// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	urlA = "https://a.example.com"
	urlB = "https://b.example.com"
)

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// config returns a manifest of an ExtensionConfig; more is appended to its clientConfig's URL, line by line.
func config(name, url string, more ...string) string {
	return strings.Join(append([]string{
		"apiVersion: runtime.cluster.x-k8s.io/v1beta2", "kind: ExtensionConfig", "metadata:", "  name: " + name,
		"spec:", "  clientConfig:", "    url: " + url,
	}, more...), "\n") + "\n"
}
