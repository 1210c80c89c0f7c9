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

	"github.com/hookgate/hookgate/command/internal/commandtest"
)

// A project in Go passes its own tests with these modules, the conformance checks among them, for which this program is
// hookgate. It requires what the packages for authors do, as `go mod tidy` would write, so that it needs no file of another
// module, and no network.
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
	made := regexp.MustCompile(`(?s)\nrequire \(\n\tgithub.com/hookgate/hookgate/gen/go \S+\n\tgithub.com/hookgate/hookgate/sdk \S+\n\)\n`)
	_, required, _ := strings.Cut(read(repository, "sdk", "go.mod"), "\nrequire ")
	required = strings.ReplaceAll(required, "../gen/go", filepath.Join(repository, "gen", "go"))
	local := made.ReplaceAllLiteralString(read(dir, "go.mod"), "\nrequire github.com/hookgate/hookgate/sdk v0.0.0\n"+
		"replace github.com/hookgate/hookgate/sdk => "+filepath.Join(repository, "sdk")+"\nrequire "+required)
	for name, content := range map[string]string{"go.sum": read(repository, "sdk", "go.sum"), "go.mod": local} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, verb := range []string{"vet", "test"} {
		cmd := exec.CommandContext(t.Context(), "go", verb, "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", commandtest.AsProgram+"=1", "HOOKGATE_BIN="+os.Args[0])
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", verb, err, out)
		}
	}
}
