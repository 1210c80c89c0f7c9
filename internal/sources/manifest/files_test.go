// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// TestFileEqual checks that a directory has changed if a name, a content, or whether a file can be read has.
func TestFileEqual(t *testing.T) {
	f := File{file: "a.yaml", content: []byte("x")}
	unreadable := File{file: "a.yaml", err: errors.New("permission denied")}
	for name, tc := range map[string]struct {
		a, b File
		want bool
	}{
		"Same":        {f, File{file: "a.yaml", content: []byte("x")}, true},
		"Name":        {f, File{file: "b.yaml", content: []byte("x")}, false},
		"Content":     {f, File{file: "a.yaml", content: []byte("y")}, false},
		"Unreadable":  {File{file: "a.yaml"}, unreadable, false},
		"Readable":    {unreadable, File{file: "a.yaml"}, false},
		"OtherReason": {unreadable, File{file: "a.yaml", err: errors.New("is a directory")}, true},
	} {
		if got := tc.a.Equal(&tc.b); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}

// What is not named as changed is taken over, unless it may have changed all the same.
func TestRereadFilesReadsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"changed.yaml", "gone.yaml", "large.yaml", "other.yaml", "target"} {
		write(name, "1")
	}
	write("large.yaml", strings.Repeat("1", limits.ManifestBytes+1))
	if err := os.Symlink("target", filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	reader := &files.Reader{}
	before, err := ReadFiles(reader, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"changed.yaml", "large.yaml", "new.yaml", "other.yaml", "target"} {
		write(name, "2")
	}
	if err := os.Remove(filepath.Join(dir, "gone.yaml")); err != nil {
		t.Fatal(err)
	}
	contents := func(before []File, changed map[string]struct{}) map[string]string {
		t.Helper()
		read, err := RereadFiles(reader, dir, before, changed)
		if err != nil {
			t.Fatal(err)
		}
		m := map[string]string{}
		for _, f := range read {
			m[filepath.Base(f.file)] = string(f.content)
		}
		return m
	}
	want := map[string]string{"changed.yaml": "2", "large.yaml": "2", "link.yaml": "2", "new.yaml": "2", "other.yaml": "1"}
	if diff := cmp.Diff(want, contents(before, map[string]struct{}{"changed.yaml": {}})); diff != "" {
		t.Errorf("after one event: -want +got\n%s", diff)
	}
	want["other.yaml"] = "2"
	if diff := cmp.Diff(want, contents(nil, nil)); diff != "" {
		t.Errorf("without what was read before: -want +got\n%s", diff)
	}
}

// The limit for all files together counts those that are taken over, too, and what is beyond it is read once there is
// room.
func TestRereadFilesLimitsAllFilesTogether(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const each = limits.ManifestsBytes / 4
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml"} {
		write(name, each)
	}
	reader := &files.Reader{}
	var last []File
	sizes := func(changed map[string]struct{}) (all []int) {
		t.Helper()
		var err error
		if last, err = RereadFiles(reader, dir, last, changed); err != nil {
			t.Fatal(err)
		}
		for _, f := range last {
			all = append(all, len(f.content))
		}
		return all
	}
	if diff := cmp.Diff([]int{each, each, each, each, 0}, sizes(nil)); diff != "" {
		t.Errorf("at the start: -want +got\n%s", diff)
	}
	write("a.yaml", 0)
	if diff := cmp.Diff([]int{0, each, each, each, each}, sizes(map[string]struct{}{"a.yaml": {}})); diff != "" {
		t.Errorf("with room: -want +got\n%s", diff)
	}
	write("a.yaml", 1)
	if diff := cmp.Diff([]int{1, each, each, each, 0}, sizes(map[string]struct{}{"a.yaml": {}})); diff != "" {
		t.Errorf("one byte beyond: -want +got\n%s", diff)
	}
}

// Empty files take memory, too, and each is a problem.
func TestReadFilesLimitsTheNumber(t *testing.T) {
	dir := t.TempDir()
	add := func(i int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.yaml", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := range limits.ManifestFiles {
		add(i)
	}
	for _, n := range []int{limits.ManifestFiles, limits.ManifestFiles + 1, limits.ManifestFiles + 2} {
		got, err := ReadFiles(&files.Reader{}, dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := min(n, limits.ManifestFiles+1); len(got) != want {
			t.Errorf("%d files: got %d, want %d", n, len(got), want)
		}
		for i := range got {
			if beyond := i == limits.ManifestFiles; (got[i].err != nil) != beyond {
				t.Fatalf("%d files: %s: %v", n, got[i].file, got[i].err)
			}
		}
		add(n)
	}
}
