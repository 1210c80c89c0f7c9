// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workflows

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/catalog"
)

var root = filepath.Join("..", "..")

type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Environment string            `json:"environment"`
		Needs       needs             `json:"needs"`
		Env         map[string]string `json:"env"`
		Minutes     int               `json:"timeout-minutes"`
		Steps       []step            `json:"steps"`
	} `json:"jobs"`
}

type step struct {
	Uses string            `json:"uses"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

// needs are the jobs that a job waits for: one, or several.
type needs []string

func (n *needs) UnmarshalJSON(data []byte) error {
	*n = needs{""}
	if err := json.Unmarshal(data, &(*n)[0]); err == nil {
		return nil
	}
	return json.Unmarshal(data, (*[]string)(n))
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// parse returns a workflow, and its text.
func parse(t *testing.T, name string) (workflow, string) {
	t.Helper()
	var w workflow
	text := read(t, ".github", "workflows", name)
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	return w, text
}

// commands returns all that the steps of a workflow run.
func commands(w workflow) string {
	var all strings.Builder
	for _, job := range w.Jobs {
		for _, step := range job.Steps {
			all.WriteString(step.Run + "\n")
		}
	}
	return all.String()
}

// pages returns the pages for people by their paths.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(found) < 10 {
		t.Fatalf("%d pages, %v", len(found), err)
	}
	texts := map[string]string{"README.md": read(t, "README.md")}
	for _, page := range found {
		texts["docs/"+filepath.Base(page)] = read(t, "docs", filepath.Base(page))
	}
	return texts
}

// pinned is an action by its commit, with the version that people read.
var pinned = regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

func TestActionsArePinnedAndBounded(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*.yml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("%v, %v", files, err)
	}
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	for _, file := range files {
		name := filepath.Base(file)
		w, text := parse(t, name)
		for _, match := range uses.FindAllStringSubmatch(text, -1) {
			if !pinned.MatchString(match[1]) {
				t.Errorf("%s uses %q: want OWNER/NAME@COMMIT # VERSION", name, match[1])
			}
		}
		// A key that is missing would give the repository's defaults, which may be everything.
		if w.Permissions == nil || slices.Contains(slices.Collect(maps.Values(w.Permissions)), "write") {
			t.Errorf("%s: permissions are %v, want none that write, except in jobs", name, w.Permissions)
		}
		for id, job := range w.Jobs {
			if job.Minutes == 0 {
				t.Errorf("%s: job %s has no timeout", name, id)
			}
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: job %s leaves credentials in its clone", name, id)
				}
				// The text of an expression becomes part of the script, also the name of a tag or of a branch.
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: job %s has an expression in a script: pass it in env", name, id)
				}
			}
		}
	}
}

func TestReleaseMayDoWhatItDoes(t *testing.T) {
	w, _ := parse(t, "release.yml")
	trusted := map[string]string{"contents": "read", "id-token": "write"}
	for name, want := range map[string]map[string]string{
		"modules":  {"contents": "write"},
		"packages": {"contents": "read"},
		"release":  {"contents": "write", "packages": "write", "id-token": "write", "attestations": "write"},
		"pypi":     trusted,
		"npm":      trusted,
		"crates":   trusted,
		"maven":    {"contents": "read"},
		"announce": {"contents": "write"},
		"docs":     {"contents": "write"},
	} {
		if got := w.Jobs[name].Permissions; !maps.Equal(got, want) {
			t.Errorf("permissions of %s are %v, want %v", name, got, want)
		}
	}
	if len(w.Jobs) != 9 {
		t.Errorf("there are %d jobs, want 9", len(w.Jobs))
	}
}

// TestReleasePublishesPackages: each registry gets what the job packages has built, by the command that the rehearsal runs
// (test/scaffold), after all that a release may fail at, and before it is announced. A registry that trusts the workflow
// gets no secret.
func TestReleasePublishesPackages(t *testing.T) {
	w, text := parse(t, "release.yml")
	for _, registry := range []string{"pypi", "npm", "maven", "crates"} {
		job, downloads, publishes := w.Jobs[registry], false, false
		for _, step := range job.Steps {
			downloads = downloads || strings.HasPrefix(step.Uses, "actions/download-artifact@") &&
				step.With["name"] == "packages" && step.With["path"] == "out/packages"
			publishes = publishes || downloads && step.Run == `scripts/publish `+registry+` "$VERSION"`
			for _, value := range step.Env {
				if strings.Contains(value, "secrets.") && registry != "maven" {
					t.Errorf("job %s has %s, although its registry trusts the workflow", registry, value)
				}
			}
		}
		if !publishes || job.Environment != registry {
			t.Errorf("job %s, of the environment %q, does not run scripts/publish with the packages", registry, job.Environment)
		}
		if !slices.Equal(job.Needs, []string{"release", "packages"}) || !slices.Contains(w.Jobs["announce"].Needs, registry) {
			t.Errorf("job %s needs %v, and what announces the release %v", registry, job.Needs, w.Jobs["announce"].Needs)
		}
	}
	for name, run := range map[string]string{"modules": `scripts/publish go "$VERSION"`, "packages": `make packages VERSION="$VERSION"`} {
		if !slices.Contains(w.Jobs["release"].Needs, "modules") || !slices.ContainsFunc(w.Jobs[name].Steps, func(s step) bool { return s.Run == run }) {
			t.Errorf("job %s does not run %s, or the release does not need the modules", name, run)
		}
	}
	for _, want := range []string{"gh release create \"$VERSION\" --draft ", "gh release edit \"$VERSION\" --draft=false",
		"sbom-path: out/hookgate-image.spdx.json", "sbom-path: out/hookgate-programs.spdx.json", "packages-dir: out/pypi"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the release does not have %s once", want)
		}
	}
}

func TestCIRunsWhatDevelopersRun(t *testing.T) {
	w, _ := parse(t, "ci.yml")
	if all := commands(w); !strings.Contains(all, "bash .ci/run") {
		t.Errorf("it runs %q, want .ci/run", all)
	}
}

// TestCIBeginsWithTheREADME looks for the targets of the README in what .ci/run makes with empty caches, before it makes
// anything else.
func TestCIBeginsWithTheREADME(t *testing.T) {
	first := regexp.MustCompile(`(?m)^(?:beside|make|scripts/fresh) .*$`).FindString(read(t, ".ci", "run"))
	targets := regexp.MustCompile(`(?m)^make (\S+)`).FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(targets) < 2 || !strings.HasPrefix(first, "scripts/fresh ") {
		t.Fatalf("the README has %d targets, and .ci/run begins with %q", len(targets), first)
	}
	for _, target := range targets {
		if !regexp.MustCompile(`[ "]` + target[1] + `\b`).MatchString(first) {
			t.Errorf("%s does not make %s, which the README has", first, target[1])
		}
	}
}

// TestReleasePublishesWhatPagesName follows each download on the pages to the step and the make target that produce it. The
// files that the release's generator writes are compared with the pages in test/clusterctl.
func TestReleasePublishesWhatPagesName(t *testing.T) {
	w, _ := parse(t, "release.yml")
	job, all := w.Jobs["release"], commands(w)
	for _, want := range []string{
		`make image VERSION="$VERSION" IMAGE_NAME="$IMAGE"`,
		`make release VERSION="$VERSION" IMAGE_NAME="$IMAGE"`,
		`"oci-archive:out/hookgate-$VERSION.tar" "docker://$IMAGE:$VERSION"`,
		`helm push "out/$chart-${VERSION#v}.tgz" "oci://$CHARTS"`,
		`cosign sign --yes --recursive "$IMAGE@$IMAGE_DIGEST"`,
		`xargs cosign sign --yes <"$RUNNER_TEMP/charts"`,
		`SHA256SUMS "${files[@]}"`,
		`make docs VERSION="$VERSION"`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the release does not run %s", want)
		}
	}
	charts := job.Env["CHARTS"]
	published := []string{
		job.Env["IMAGE"], charts, charts + "/hookgate", charts + "/hookgate-infrastructure", charts + "/hookgate-sidecar",
	}
	registry := regexp.MustCompile(`ghcr\.io/[\w./-]+`)
	for page, text := range pages(t) {
		for _, name := range registry.FindAllString(text, -1) {
			if !slices.Contains(published, strings.TrimRight(name, ".")) {
				t.Errorf("%s names %s, which the release does not publish: it publishes %v", page, name, published)
			}
		}
	}
}

func TestReleasesHaveDates(t *testing.T) {
	headings := regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(read(t, "CHANGELOG.md"), -1)
	if len(headings) == 0 {
		t.Fatal("CHANGELOG.md has no version")
	}
	dates := map[string]string{} // by release, as the product knows them
	for _, r := range catalog.New().Releases() {
		if r.Date != "" { // the next one has none
			dates[r.Version] = r.Date
		}
	}
	released := 0
	for i, heading := range headings {
		if heading[1] == "Unreleased" && i == 0 {
			continue
		}
		version, date, _ := strings.Cut(heading[1], " - ")
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			t.Errorf("CHANGELOG.md: %q: want VERSION - YYYY-MM-DD: %v", heading[1], err)
		}
		series := regexp.MustCompile(`^v(\d+)\.(\d+)\.\d+`).FindStringSubmatch(version)
		if series == nil {
			t.Errorf("CHANGELOG.md: %q is no version", version)
			continue
		}
		if line := "- major: " + series[1] + "\n  minor: " + series[2] + "\n"; !strings.Contains(read(t, "deploy", "release", "metadata.yaml"), line) {
			t.Errorf("deploy/release/metadata.yaml has no series for %s, for which clusterctl would refuse it", version)
		}
		if dates[version] != date {
			t.Errorf("CHANGELOG.md: %s is of %s, in the table of catalog/contract.go of %q", version, date, dates[version])
		}
		delete(dates, version)
		released++
	}
	for version := range dates {
		t.Errorf("catalog/contract.go: release %s has a date, and CHANGELOG.md no heading", version)
	}
	if released == 0 {
		t.Error("CHANGELOG.md has no release")
	}
}
