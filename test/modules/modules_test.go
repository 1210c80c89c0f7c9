// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// building are the modules that compile many packages of the product's dependencies, besides the product.
var building = []string{
	"examples/go", "test/conversion", "test/e2e", "test/extension", "test/faults", "test/helm", "test/infrastructure",
	"test/openapi", "tools/clusterctl", "tools/kubernetes", "tools/monitoring",
}

// TestSharedVersions compares the versions of what several modules require. Go compiles a package once for all modules,
// if they have the same versions of it and of everything that it imports; and a suite then runs what the product has.
// test/skew has the versions of an older Cluster API, and the other tools share little with the product.
func TestSharedVersions(t *testing.T) {
	product := required(t, ".")
	for _, dir := range building {
		shared := 0
		for path, version := range required(t, dir) {
			want, ok := product[path]
			if !ok || version == "v0.0.0" { // which is replaced
				continue
			}
			shared++
			if version != want {
				t.Errorf("%s/go.mod requires %s %s, and go.mod %s: use the same version in both", dir, path, version, want)
			}
		}
		if shared == 0 {
			t.Errorf("%s/go.mod requires nothing that go.mod does", dir)
		}
	}
}

// required returns the versions that the go.mod of a folder requires, by path.
func required(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = filepath.Join("..", "..", dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(cmd.Args, " "), err, out)
	}
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatalf("%s/go.mod: %v", dir, err)
	}
	versions := make(map[string]string, len(file.Require))
	for _, r := range file.Require {
		versions[r.Path] = r.Version
	}
	return versions
}
