// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workflows

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	heading = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	link    = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`) // a link in a heading
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// anchors returns the anchors that GitHub gives the headings of a page.
func anchors(page string) map[string]bool {
	found, times := map[string]bool{}, map[string]int{}
	for _, match := range heading.FindAllStringSubmatch(page, -1) {
		text := strings.ToLower(linked.ReplaceAllString(match[1], "$1"))
		anchor := strings.ReplaceAll(dropped.ReplaceAllString(text, ""), " ", "-")
		n := times[anchor]
		if times[anchor]++; n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		found[anchor] = true
	}
	return found
}

// TestLinks follows the links of all pages as they are on GitHub. `make docs` does so for the site.
func TestLinks(t *testing.T) {
	pages, followed := map[string]string{}, 0
	for name := range strings.Lines(git(t, root, "ls-files", "-co", "--exclude-standard", "*.md", ":!*/testdata/*")) {
		name = strings.TrimSpace(name)
		pages[name] = fenced.ReplaceAllString(read(t, filepath.FromSlash(name)), "")
	}
	for name, page := range pages {
		for _, match := range link.FindAllStringSubmatch(page, -1) {
			if strings.Contains(match[1], ":") {
				continue
			}
			followed++
			target := name
			if match[1] != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), match[1]))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, target)
			} else if match[2] != "" && !anchors(pages[target])[match[2]] {
				t.Errorf("%s links to %s, which has no anchor #%s", name, target, match[2])
			}
		}
	}
	if followed < 500 {
		t.Errorf("the pages have %d links, want hundreds", followed)
	}
}

var (
	firstLink = regexp.MustCompile(`(?m)^- \[[^\]]+\]\(([a-z-]+\.md)\)`)
	next      = regexp.MustCompile(`(?m)^Next: \[[^\]]+\]\(([a-z-]+\.md)\)`)
)

// TestPaths checks that the README and the index of docs/ list the same pages of a path, and that the link Next of each
// page leads to the page after it.
func TestPaths(t *testing.T) {
	index, paths := read(t, "docs", "README.md"), 0
	_, readOn, _ := strings.Cut(read(t, "README.md"), "## Read on\n")
	for _, section := range strings.Split(readOn, "\n- ")[1:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(section, "**"), "**")
		_, listed, found := strings.Cut(index, "### "+name+"\n")
		if !found {
			continue // the path of who works on Hookgate
		}
		paths++
		listed, _, _ = strings.Cut(listed, "\n#")
		var want, got []string
		for _, match := range firstLink.FindAllStringSubmatch(listed, -1) {
			want = append(want, match[1])
		}
		for _, match := range link.FindAllStringSubmatch(section, -1) {
			if page, ok := strings.CutPrefix(match[1], "docs/"); ok && page != "README.md" {
				got = append(got, page)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: the README lists %q, docs/README.md %q", name, got, want)
		}
		for i := 1; i < len(want); i++ {
			if match := next.FindStringSubmatch(read(t, "docs", want[i-1])); match == nil || match[1] != want[i] {
				t.Errorf("docs/%s does not lead to %s, the page after it in %q", want[i-1], want[i], name)
			}
		}
	}
	if paths != 3 {
		t.Errorf("the README has %d paths that docs/README.md also has, want 3", paths)
	}
}
