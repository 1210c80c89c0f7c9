// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workflows

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// suites returns the suites of `make test-all`.
func suites(t *testing.T) []string {
	t.Helper()
	line := regexp.MustCompile(`(?m)^SUITES \?= (.*)$`).FindStringSubmatch(read(t, "Makefile"))
	if line == nil {
		t.Fatal("the Makefile has no line SUITES ?=")
	}
	return strings.Fields(line[1])
}

// TestSuites looks for each file of the repository in the table of suites: each has a row, each row is the first of some
// file, and each suite is named. What all suites stand on runs all of them, the packages of the gateway above all.
func TestSuites(t *testing.T) {
	type row struct {
		pattern *regexp.Regexp
		suites  []string
		used    bool
	}
	var table []*row
	named := map[string]bool{}
	for line := range strings.Lines(read(t, "scripts", "suites.txt")) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0] != "#" {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(fields[0]), `\*`, ".*")
			table = append(table, &row{regexp.MustCompile("^" + pattern + "$"), fields[1:], false})
			for _, name := range fields[1:] {
				named[name] = true
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(named)), slices.Sorted(slices.Values(append(suites(t), "all", "none"))); !slices.Equal(got, want) {
		t.Errorf("suites.txt names the suites %q, and the Makefile has %q", got, want)
	}
	first := func(path string) *row {
		for _, r := range table {
			if r.pattern.MatchString(path) {
				return r
			}
		}
		return &row{}
	}
	for path := range strings.Lines(git(t, root, "ls-files")) {
		r := first(strings.TrimSpace(path))
		if r.used = true; len(r.suites) == 0 {
			t.Errorf("suites.txt has no row for %s", path)
		}
	}
	for _, r := range table {
		if !r.used {
			t.Errorf("the row %s of suites.txt is the first of no file", r.pattern)
		}
	}
	everywhere := []string{
		"go.mod", "go.sum", "test/e2e/go.mod", "proto/hookgate/hooks/v1alpha1/common.proto", "proto/released.binpb",
		"gen/openapi/hooks.openapi.json", "test/process/process.go", "scripts/test-all", ".ci/run", "Makefile",
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}}", "./cmd/hookgate")
	list.Dir, list.Stderr = root, os.Stderr
	linked, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.Lines(string(linked)) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(path), "github.com/hookgate/hookgate/"); ok && !ofOneSuite[dir] {
			everywhere = append(everywhere, dir+"/x.go")
		}
	}
	for _, path := range everywhere {
		if got := first(path).suites; !slices.Equal(got, []string{"all"}) {
			t.Errorf("%s runs %q, want all", path, got)
		}
	}
}

// ofOneSuite are the packages of the gateway that one suite alone uses.
var ofOneSuite = map[string]bool{"internal/seeing/console": true, "internal/cli/scaffold": true}

// TestSuitesOfAChange has the script choose the suites for changes since a commit that passed.
func TestSuitesOfAChange(t *testing.T) {
	all := strings.Join(suites(t), " ")
	for name, tc := range map[string]struct {
		change string // commands of a shell; $passed is the commit in .ci/passed
		env    string
		want   string
	}{
		"Nothing":     {":", "", ""},
		"OnlyTests":   {"echo new >gateway/gateway_test.go", "", ""},
		"APage":       {"echo new >docs/proxies.md", "", "kubernetes clusterctl proxies docs"},
		"Committed":   {"echo new >docs/runbooks.md; git commit -qam new", "", "kubernetes clusterctl monitoring docs"},
		"TwoSuites":   {"mkdir -p test/image test/e2e; touch test/image/new test/e2e/new", "", "e2e image"},
		"Pipeline":    {"echo new >gateway/chain.go", "", all},
		"Removed":     {"rm gateway/chain.go", "", all},
		"Moved":       {"git mv gateway/chain.go docs/chain.md", "", all},
		"AddedModule": {"echo >go.sum", "", all},
		"Unknown":     {"mkdir new; echo >new/file", "", all},
		"OddName":     {`echo >"$(printf 'docs/\303\244\n.md')"`, "", all},
		"SomePassed":  {"echo new >gateway/chain.go; git commit -qam new; echo $(git rev-parse HEAD) e2e kubernetes >>.ci/passed", "", strings.ReplaceAll(strings.ReplaceAll(all, "e2e ", ""), "kubernetes ", "")},
		"AndChanged":  {"echo new >gateway/chain.go; git commit -qam new; echo $(git rev-parse HEAD) " + all + " >>.ci/passed; echo new >docs/proxies.md", "", "kubernetes clusterctl proxies docs"},
		"SomeUnknown": {"echo $passed | tr 0-9 1-90 >>.ci/passed", "", all},
		"NoTree":      {"echo new >gateway/doc.go; git commit -qam new; tree=$(git rev-parse $passed^{tree}); rm -f .git/objects/${tree:0:2}/${tree:2}", "", all},
		"Empty":       {": >.ci/passed", "", all},
		"Full":        {":", "FULL=1", all},
		"NoRecord":    {"rm .ci/passed", "", all},
		"NoCommit":    {"echo $passed | tr 0-9 1-90 >.ci/passed", "", all},
		"NotEarlier":  {"git commit -q --allow-empty -m later; git rev-parse HEAD >.ci/passed; git reset -q --hard $passed; git rev-parse HEAD@{1} >.ci/passed", "", all},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, path := range []string{"Makefile", "scripts/suites", "scripts/suites.txt", "gateway/doc.go", "gateway/chain.go", "docs/proxies.md", "docs/runbooks.md"} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o750); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, path), []byte(read(t, filepath.FromSlash(path))), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			git(t, dir, "init", "-q")
			git(t, dir, "add", ".")
			git(t, dir, "commit", "-q", "-m", "passed")
			cmd := exec.CommandContext(t.Context(), "bash", "-euc", "passed=$(git rev-parse HEAD); mkdir .ci; echo $passed >.ci/passed; "+tc.change+"; exec env -u FULL "+tc.env+" bash scripts/suites")
			cmd.Dir, cmd.Env = dir, gitEnv()
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if got := strings.TrimSpace(string(out)); err != nil || got != tc.want {
				t.Errorf("%v: got %q, want %q: %s", err, got, tc.want, said.String())
			}
		})
	}
}

// gitEnv returns an environment in which git can commit, whatever the settings of the user are.
func gitEnv() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, gitEnv()
	if dir == root {
		cmd.Env = os.Environ() // it may name the folder as safe
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}
