// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// testReproducible builds the image again from a copy of the sources: in another folder, later, without the history,
// with another umask and in another time zone. Not a byte may differ.
func testReproducible(t *testing.T, i *image) {
	sources, again := t.TempDir(), filepath.Join(t.TempDir(), "again.tar")
	copySources(t, filepath.Join("..", ".."), sources)
	cmd := exec.Command("sh", "-c", `umask 077 && exec make --no-print-directory image "$@"`, "sh",
		"VERSION="+i.tag, "COMMIT="+i.index.Annotations["org.opencontainers.image.revision"], "IMAGE_OUT="+again)
	cmd.Dir = sources
	cmd.Env = append(environWithout("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "PWD", "TZ"),
		"TZ=Pacific/Auckland")
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		t.Fatalf("make image: %v\n%s", err, output.String())
	}
	if a, b := readFile(t, i.path), readFile(t, again); !bytes.Equal(a, b) {
		t.Errorf("two builds of the same sources differ: %s and %s (diffoscope shows where)", digest(a), digest(b))
	}
}

// outputs are what the examples build in their own folders, perhaps while the sources are copied.
var outputs = []string{"*/__pycache__", "*/bin", "*/build", "*/node_modules", "*/target", "typescript/gen"}

// copySources copies everything that a build may depend on: not the build's outputs, nor the history.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "out"}, relative):
			return fs.SkipDir
		case entry.IsDir() && isOutput(relative):
			return fs.SkipDir
		case relative == ".git": // in a linked worktree it is a file
			return nil
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, info.Mode().Perm())
	})
	if err != nil {
		t.Fatalf("copy the sources: %v", err)
	}
}

// isOutput reports whether an example builds the folder.
func isOutput(relative string) bool {
	return slices.ContainsFunc(outputs, func(pattern string) bool {
		matched, err := filepath.Match(filepath.Join("examples", pattern), relative)
		return matched && err == nil
	})
}

// environWithout returns the environment without some variables: make passes its flags to nested makes.
func environWithout(names ...string) []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(names, name)
	})
}
