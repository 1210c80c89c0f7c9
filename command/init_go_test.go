// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A project in Go passes its own tests with this module, the conformance checks among them. It requires what this module
// does, as `go mod tidy` would write, so that it needs no file of another module, and no network.
func TestInitGo(t *testing.T) {
	dir := madeProject(t, "go", "my-extension")
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(path ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const hookgateModule = "github.com/hookgate/hookgate"
	_, required, _ := strings.Cut(read(repository, "go.mod"), "\nrequire ")
	local := regexp.MustCompile(`(?m)^require `+hookgateModule+` .*$`).ReplaceAllLiteralString(read(dir, "go.mod"),
		"require "+hookgateModule+" v0.0.0\nreplace "+hookgateModule+" => "+repository+"\nrequire "+required)
	for name, content := range map[string]string{"go.sum": read(repository, "go.sum"), "go.mod": local} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"vet", "test"} {
		cmd := exec.CommandContext(t.Context(), "go", verb, "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", verb, err, out)
		}
	}
}
