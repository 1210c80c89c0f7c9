// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	goBlock  = regexp.MustCompile("(?s)```go[^\n]*\n(.*?)\n```")
	imported = regexp.MustCompile(`"(` + product + `[^"]*)"`)
)

// TestExamplesOutside compiles the files with Examples, the programs of examples/, and what the blocks of Go in pages
// import, in a module of its own: from there, as for everybody else, internal packages cannot be imported. Its requirements are those of this module, so
// that it needs no network.
func TestExamplesOutside(t *testing.T) {
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	outside := t.TempDir()
	write := func(text string, path ...string) {
		t.Helper()
		file := filepath.Join(append([]string{outside}, path...)...)
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := func(path ...string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(append([]string{repository}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	examples := 0
	var pages strings.Builder
	pages.WriteString("package pages\n")
	_, importable := exportData(t)
	for _, pkg := range importable {
		dir := strings.TrimPrefix(pkg, product)
		files, err := filepath.Glob(filepath.Join(repository, dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if text := read(dir, filepath.Base(file)); strings.Contains(text, "\nfunc Example") {
				examples++
				write(text, "packages", dir, filepath.Base(file))
			}
		}
	}
	programs, err := filepath.Glob(filepath.Join(repository, "examples", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob(filepath.Join(repository, "examples", "*", "*", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range append(programs, deeper...) {
		dir, err := filepath.Rel(repository, filepath.Dir(program))
		if err != nil {
			t.Fatal(err)
		}
		if dir == "examples/quickstart" {
			continue // make run: it makes the certificates of a gateway on this machine
		}
		files, err := filepath.Glob(filepath.Join(repository, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if !strings.HasSuffix(file, "_test.go") {
				write(read(dir, filepath.Base(file)), dir, filepath.Base(file))
			}
		}
	}
	err = fs.WalkDir(os.DirFS(repository), ".", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "out" || d.Name() == "node_modules" || d.Name() == ".git") {
			return fs.SkipDir
		}
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		for _, block := range goBlock.FindAllString(read(path), -1) {
			for _, match := range imported.FindAllStringSubmatch(block, -1) {
				fmt.Fprintf(&pages, "\nimport _ %q // %s\n", match[1], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if examples < 10 || !strings.Contains(pages.String(), "docs/extensions.md") {
		t.Errorf("found %d files with Examples, and in pages\n%s", examples, pages.String())
	}
	write(pages.String(), "pages", "pages.go")
	_, required, _ := strings.Cut(read("go.mod"), "\nrequire ")
	required = strings.ReplaceAll(required, "=> ./", "=> "+repository+"/")
	write("module example.com/outside\n\ngo 1.26.0\n\nrequire github.com/hookgate/hookgate v0.0.0\n\n"+
		"replace github.com/hookgate/hookgate => "+repository+"\n\nrequire "+required, "go.mod")
	write(read("go.sum"), "go.sum")
	cmd := exec.CommandContext(t.Context(), "go", "vet", "./...")
	cmd.Dir = outside
	cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
