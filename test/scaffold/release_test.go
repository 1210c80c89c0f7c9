// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// release is the version of the release in the test, and tags are those of its modules.
const release = "v0.1.0"

var tags = []string{"gen/go/" + release, "sdk/" + release, release, "cmd/hookgate-render/" + release}

// TestRelease makes the release of this tree in a clone, has Go fetch its modules by their tags into a module proxy made
// of files, and takes the way of a new user with nothing else of this repository: the program is installed, it makes a
// project, whose tests run, and what the project takes home is counted.
func TestRelease(t *testing.T) {
	process.Program(t, "HOOKGATE_PACKAGES")
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	u := &user{filepath.Join(place, "repository"), outside(repository, "GOWORK=off", "GOFLAGS=-modcacherw -trimpath",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")}
	for _, file := range workingTree(t, repository) {
		info, err := os.Stat(filepath.Join(repository, file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(u.folder, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, read(t, repository, file), info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	u.run(t, "git init -q -b main && git add -A && git commit -q -m tree")
	said := u.run(t, "unset MAKEFLAGS MAKELEVEL; make -s release-tags VERSION="+release)
	t.Log("make release-tags says:\n" + said)
	var pushed []string
	for _, push := range regexp.MustCompile(`(?m)^  git push origin (.*)$`).FindAllStringSubmatch(said, -1) {
		pushed = append(pushed, strings.Fields(push[1])...)
	}
	if strings.Join(pushed, " ") != strings.Join(tags, " ") {
		t.Errorf("the tags are %q, want %q", pushed, tags)
	}
	if out := u.run(t, "git status --short --branch; git log --oneline -2 "+release); !strings.HasPrefix(out, "## main\n") || strings.Count(out, "\n") != 3 {
		t.Errorf("the release is to be one commit on main, which stays as it is:\n%s", out)
	}
	for _, tag := range tags {
		file := strings.TrimPrefix(strings.TrimSuffix(tag, release)+"go.mod", "/")
		if mod := u.run(t, "git show "+tag+":"+file); strings.Contains(mod, "replace") || strings.Contains(mod, "hookgate v0.0.0") {
			t.Errorf("%s of %s:\n%s", file, tag, mod)
		}
	}
	if out, err := u.command(t, "scripts/release-tags "+release).CombinedOutput(); err == nil || !strings.Contains(string(out), "there is a tag "+tags[0]) {
		t.Errorf("a second release of the same version: %v\n%s", err, out)
	}
	u.publish(t, place)

	// go install refuses a program whose go.mod has a replacement.
	for _, program := range []string{"hookgate", "hookgate-render"} {
		u.run(t, "go install "+module+"/cmd/"+program+"@"+release)
	}
	for _, version := range []string{"hookgate version", "hookgate-render --version"} {
		if out := u.run(t, version); !strings.Contains(out, release) {
			t.Errorf("%s prints\n%s", version, out)
		}
	}
	t.Run("Hello", func(t *testing.T) { u.hello(t, place) })
	t.Run("Imports", func(t *testing.T) { u.imports(t, place) })
}

// publish has Go fetch the modules of the release from the clone, and from then on from a folder in place of the clone.
func (u *user) publish(t *testing.T, place string) {
	t.Helper()
	published := filepath.Join(place, "published")
	fetch := &user{place, slices.Concat(u.env, []string{"GOPRIVATE=" + module, "GOMODCACHE=" + published, "GOSUMDB=off",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + u.folder + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + module})}
	for _, tag := range tags {
		dir := strings.TrimSuffix(strings.TrimSuffix(tag, release), "/")
		fetch.run(t, "go mod download "+strings.TrimSuffix(module+"/"+dir, "/")+"@"+release)
	}
	bin := filepath.Join(place, "bin")
	u.env = append(u.env, "GOPROXY=file://"+published+"/cache/download,file://"+output(t, "go", "env", "GOMODCACHE")+"/cache/download,"+
		output(t, "go", "env", "GOPROXY"), "GONOSUMDB="+module, "GOMODCACHE="+filepath.Join(place, "modules"), "GOBIN="+bin,
		"PATH="+bin+":"+os.Getenv("PATH"))
	// The sums in go.sum are those of what Go fetches, and nothing is missing.
	u.run(t, "git checkout -q "+release+"; for dir in gen/go sdk . cmd/hookgate-render; do go -C $dir mod tidy -diff; done")
	// What builds the files of the release, and tests, does so with the modules beside it.
	u.run(t, "go -C tools list ./image; go -C examples/go list .; go -C test/extra list ./extension; go -C test/infrastructure list ./cmd/fake-cloud")
	if err := os.RemoveAll(u.folder); err != nil {
		t.Fatal(err)
	}
	u.folder = place
}

// hello makes a project, runs its tests, and counts its requirements with them and without.
func (u *user) hello(t *testing.T, place string) {
	t.Helper()
	u.run(t, "hookgate init go acme")
	project := &user{filepath.Join(place, "acme"), u.env}
	if out := project.run(t, project.readme(t)[0][0]+" -v"); !strings.Contains(out, "--- PASS: TestConformance/discovery.answers") {
		t.Errorf("the checks are no subtests:\n%s", out)
	}
	project.count(t, "hello, with its tests", 20)
	project.run(t, "rm handlers_test.go && go mod tidy && go build -o bin/acme .")
	project.count(t, "hello", 15)
}

// imports counts what somebody takes home who imports one package.
func (u *user) imports(t *testing.T, place string) {
	t.Helper()
	for name, tt := range map[string]struct {
		module string
		most   int
	}{
		"gen/go/hookgate/infrastructure/v1alpha1": {module + "/gen/go", 6},
		"sdk":          {module + "/sdk", 7},
		"caller":       {module, 15},
		"api/v1alpha1": {module, 18},
	} {
		project := &user{filepath.Join(place, strings.ReplaceAll(name, "/", "-")), u.env}
		if err := os.Mkdir(project.folder, 0o750); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{
			"go.mod":  "module example.com/acme\n\ngo 1.26.0\n\nrequire " + tt.module + " " + release + "\n",
			"main.go": "package main\n\nimport _ \"" + module + "/" + name + "\"\n\nfunc main() {}\n",
		} {
			if err := os.WriteFile(filepath.Join(project.folder, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		project.run(t, "go mod tidy && go vet .")
		project.count(t, name, tt.most)
	}
}

// count fails if a project has more indirect requirements than these, and logs what else it takes home.
func (u *user) count(t *testing.T, name string, most int) {
	t.Helper()
	mod := string(read(t, u.folder, "go.mod"))
	indirect := strings.Count(mod, "// indirect")
	t.Logf("%s: %d indirect requirements, %d lines of go.sum, %d modules", name, indirect,
		strings.Count(string(read(t, u.folder, "go.sum")), "\n"), strings.Count(u.run(t, "go list -m all"), "\n"))
	if indirect > most {
		t.Errorf("%s has %s indirect requirements, want %d at most:\n%s", name, strconv.Itoa(indirect), most, mod)
	}
}
