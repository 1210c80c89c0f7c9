// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// building are the modules that compile many packages of the product's dependencies, besides the product.
var building = []string{
	"cmd/hookgate-render", "examples/go", "gen/go", "sdk", "test/e2e", "test/extra", "test/infrastructure",
	"tools/clusterctl", "tools/kubernetes",
}

// behind are the modules whose versions of Kubernetes and of what is built on it are those of Cluster API, and why. An
// entry goes when its module can have the product's.
var behind = map[string]string{
	"test/e2e":            inMemory,
	"test/infrastructure": inMemory,
}

const inMemory = "the in-memory provider of Cluster API v1.14 does not compile with etcd v3.7, which Kubernetes v0.37 needs"

// TestSharedVersions compares the versions of what several modules require. Go compiles a package once for all modules,
// if they have the same versions of it and of everything that it imports; and a suite then runs what the product has.
// test/skew has the versions of an older Cluster API. tools requires the product, so it has the same versions, or newer
// ones that a tool needs.
func TestSharedVersions(t *testing.T) {
	product := required(t, ".")
	for _, dir := range building {
		shared, older := 0, 0
		for path, version := range required(t, dir) {
			want, ok := product[path]
			if !ok || version == "" { // this repository
				continue
			}
			shared++
			switch {
			case version == want:
			case behind[dir] != "":
				older++
			default:
				t.Errorf("%s/go.mod requires %s %s, and go.mod %s: use the same version in both", dir, path, version, want)
			}
		}
		switch {
		case older > 0:
			t.Logf("%s has %d other versions than the product: %s", dir, older, behind[dir])
		case behind[dir] != "":
			t.Errorf("%s has the versions of the product: its reason to be behind is gone: %s", dir, behind[dir])
		}
		if shared == 0 {
			t.Errorf("%s/go.mod requires nothing that go.mod does", dir)
		}
	}
}

// TestNewer asks module proxies that have no newer types of Cluster API, that do not answer, and that have a prerelease
// with a member that the contract lacks.
func TestNewer(t *testing.T) {
	for name, tc := range map[string]struct{ proxy, want string }{
		"Same":    {proxyOf(t, required(t, ".")[clusterAPI], ""), "Cluster API has no types that are newer than "},
		"NoProxy": {"off", "NOT CHECKED: newer types of Cluster API: "},
		"Newer": {
			proxyOf(t, "v1.99.0-beta.0", "Preserve *bool `json:\"preserve,omitempty\"`"),
			"NEWER: Cluster API v1.99 is served, as v1.99.0-beta.0, and catalog/clusterapi.go does not have it: the steps " +
				"are in CONTRIBUTING.md\nNEWER:   CanUpdateMachineResponse.preserve: is missing here",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "./newer")
			// The prerelease is none of those that a cache of modules may have.
			cmd.Env = append(os.Environ(), "GOPROXY="+tc.proxy, "GOSUMDB=off", "GOMODCACHE="+filepath.Join(t.TempDir(), "modules"),
				"GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0") // as the Makefile builds
			out, err := cmd.Output()
			for want := range strings.SplitSeq(tc.want, "\n") {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%v: want %q in\n%s", err, want, out)
				}
			}
		})
	}
}

const clusterAPI = "sigs.k8s.io/cluster-api/api"

// proxyOf returns a proxy in a folder that has one version of Cluster API's types, with a member more in the answer of
// CanUpdateMachine; for all else, it has what the cache of modules has, to which it downloads what newer needs: the files
// go.mod of all modules, and what package codec imports.
func proxyOf(t *testing.T, version, member string) string {
	t.Helper()
	for _, args := range [][]string{{"list", "-m", "all"}, {"list", "-deps", "-test", "./internal/contract/codec"}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s, which downloads modules: %v\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cached := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	from := required(t, ".")[clusterAPI]
	dir := filepath.Join(t.TempDir(), clusterAPI, "@v")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	types, err := zip.OpenReader(filepath.Join(cached, clusterAPI, "@v", from+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = types.Close() }()
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, f := range types.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out, err := w.Create(strings.Replace(f.Name, "@"+from, "@"+version, 1))
		if err != nil {
			t.Fatal(err)
		}
		const start = "type CanUpdateMachineResponse struct {\n"
		if _, err := io.WriteString(out, strings.Replace(string(text), start, start+member+"\n", 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(cached, clusterAPI, "@v", from+".mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"list": []byte(version + "\n"), version + ".info": []byte(`{"Version": "` + version + `"}`), version + ".mod": mod, version + ".zip": archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return "file://" + strings.TrimSuffix(dir, filepath.Join(clusterAPI, "@v")) + ",file://" + cached
}

// required returns the versions that the go.mod of a folder requires, by path. Those of replaced modules are of what
// replaces them, and empty for a folder.
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
		Replace []struct {
			Old struct{ Path string }
			New struct{ Version string }
		}
	}
	if err := json.Unmarshal(out, &file); err != nil {
		t.Fatalf("%s/go.mod: %v", dir, err)
	}
	versions := make(map[string]string, len(file.Require))
	for _, r := range file.Require {
		versions[r.Path] = r.Version
	}
	for _, r := range file.Replace {
		versions[r.Old.Path] = r.New.Version
	}
	return versions
}
