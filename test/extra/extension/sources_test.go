// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/conformance"
)

// TestSources checks that what the conformance checks name as the sources of their rules exists in this version of
// Cluster API: files, the names in them, and the headings of its book.
func TestSources(t *testing.T) {
	checked := 0
	for _, check := range conformance.Checks() {
		for source := range strings.SplitSeq(check.Source, "; ") {
			source, _, _ = strings.Cut(source, ": ")
			parts := strings.Split(source, ", ")
			switch {
			case parts[0] == "Cluster API" && len(parts) == 3:
				path, name := parts[1], parts[2][strings.LastIndex(parts[2], ".")+1:]
				module := "sigs.k8s.io/cluster-api"
				if below, ok := strings.CutPrefix(path, "api/"); ok {
					module, path = module+"/api", below
				}
				contains(t, check.ID, filepath.Join(moduleDir(t, module), path), name)
			case parts[0] == "Cluster API book" && len(parts) == 3:
				const folder = "docs/book/src/tasks/experimental-features/runtime-sdk"
				contains(t, check.ID, filepath.Join(moduleDir(t, "sigs.k8s.io/cluster-api"), folder, parts[1]),
					"# "+parts[2]+"\n")
			case len(parts) == 1 && (strings.HasPrefix(source, "docs/") || strings.HasPrefix(source, "proto/")):
				contains(t, check.ID, filepath.Join("../../..", source), "")
			case len(parts) == 2 && strings.HasPrefix(source, "proto/"): // a message or an enumeration
				contains(t, check.ID, filepath.Join("../../..", parts[0]), " "+parts[1]+" {\n")
			case parts[0] == "gRPC" || strings.HasPrefix(source, "RFC "):
			default:
				t.Errorf("%s has the source %q, which is not of a known form", check.ID, source)
			}
			checked++
		}
	}
	if checked < 40 {
		t.Errorf("found %d sources only", checked)
	}
}

func contains(t *testing.T, check, file, text string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("%s: %v", check, err)
		return
	}
	if !strings.Contains(string(content), text) {
		t.Errorf("%s: %s has no %q", check, file, text)
	}
}

var moduleDirs = map[string]string{}

func moduleDir(t *testing.T, module string) string {
	t.Helper()
	if moduleDirs[module] == "" {
		out, err := exec.Command("go", "mod", "download", "-json", module).Output()
		var found struct{ Dir string }
		if e := json.Unmarshal(out, &found); e != nil || err != nil {
			t.Fatalf("go mod download %s: %v %v %s", module, err, e, out)
		}
		moduleDirs[module] = found.Dir
	}
	return moduleDirs[module]
}
