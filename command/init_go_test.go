// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// A project in Go passes its own tests with this module, the conformance checks among them. This is without the network:
// what the module needs is there.
func TestInitGo(t *testing.T) {
	dir := madeProject(t, "go", "my-extension")
	repository, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	const hookgateModule = "github.com/hookgate/hookgate"
	local := regexp.MustCompile(`(?m)^require `+hookgateModule+` .*$`).ReplaceAllString(string(module),
		"require "+hookgateModule+" v0.0.0\nreplace "+hookgateModule+" => "+repository)
	for name, content := range map[string]string{"go.sum": string(sums), "go.mod": local} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"vet", "-mod=mod", "./..."}, {"test", "-mod=mod", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
}
