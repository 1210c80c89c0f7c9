// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterctl

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// downloadURL matches a file of a release, or its latest one as clusterctl and as GitHub write it.
var downloadURL = regexp.MustCompile(`github\.com/hookgate/hookgate/releases/(?:latest/download|latest|download/[^/\s]+)/([\w.-]+)`)

// artifact matches the names that only files of a release have, wherever a page has them.
var artifact = regexp.MustCompile(`[a-z]+\.openapi\.json|\bhookgate(?:-infrastructure|-sidecar|-man-pages)?(?:-\d[\d.]*\d)?\.(?:tgz|tar\.gz)` +
	`|\bhookgate(?:-render)?-(?:linux|darwin)-\w+`)

// tag matches a release that a page names: the tag of the image, to clusterctl, to kustomize, in a URL, and the version of a
// chart.
var tag = regexp.MustCompile(`(?:\bhookgate:|ref=|refs/tags/|releases/download/|newTag: |--version |hookgate-sidecar\n  version: )v?(\d+\.\d+)\.\d+\b`)

// TestDownloadsOfTheDocsAreReleased compares what the pages tell people to download, and the files of a release that they
// name, with those that a release has.
func TestDownloadsOfTheDocsAreReleased(t *testing.T) {
	programs := t.TempDir()
	for _, name := range platforms(t) {
		for _, program := range []string{"hookgate-", "hookgate-render-"} {
			if err := os.WriteFile(filepath.Join(programs, program+name), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir, stderr, err := release(t, "v0.1.0", "-binaries", programs)
	if err != nil {
		t.Fatalf("release: %v\n%s", err, stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, entry := range entries {
		files = append(files, entry.Name())
	}
	checksums := string(read(t, filepath.Join(dir, "SHA256SUMS")))
	for _, file := range files {
		if file != "SHA256SUMS" && !strings.Contains(checksums, "  "+file+"\n") {
			t.Errorf("SHA256SUMS lacks %s, so that the workflow does not publish it", file)
		}
	}
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var series []string
	for _, match := range regexp.MustCompile(`(?m)^## v(\d+\.\d+)\.`).FindAllSubmatch(read(t, filepath.Join("..", "..", "CHANGELOG.md")), -1) {
		series = append(series, string(match[1]))
	}
	named, tagged := 0, 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		text := string(read(t, page))
		names := artifact.FindAllString(text, -1)
		for _, match := range downloadURL.FindAllStringSubmatch(text, -1) {
			names = append(names, match[1])
		}
		for _, name := range names {
			if !slices.Contains(files, name) {
				t.Errorf("%s names %s, which no release has: it has %v", page, name, files)
			}
		}
		tags := tag.FindAllStringSubmatch(text, -1)
		for _, match := range tags {
			if !slices.Contains(series, match[1]) {
				t.Errorf("%s names a release in %q, and there are those of %v", page, match[0], series)
			}
		}
		named, tagged = named+len(names), tagged+len(tags)
	}
	if named < 20 || tagged < 12 {
		t.Errorf("the pages name %d downloads and %d releases, and there are more", named, tagged)
	}
}

// platforms returns those of the programs that `make release` builds.
func platforms(t *testing.T) []string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^PROGRAM_PLATFORMS \?= (.*)$`).FindSubmatch(read(t, filepath.Join("..", "..", "Makefile")))
	if line == nil {
		t.Fatal("the Makefile has no PROGRAM_PLATFORMS")
	}
	return strings.Fields(string(line[1]))
}

func TestReleaseRefusesAProgramWithTheNameOfAnotherFile(t *testing.T) {
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "metadata.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, err := release(t, "v0.1.0", "-binaries", programs); err == nil || !strings.Contains(stderr, "the release already has a different file with this name") {
		t.Errorf("release: %v, %q", err, stderr)
	}
}
