// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workflows

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
