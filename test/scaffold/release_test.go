// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// release is the version of the release in the test, and tags are those of its modules.
const release = "v0.1.0"

var tags = []string{"gen/go/" + release, "sdk/" + release, release, "cmd/hookgate-render/" + release}

// TestRelease makes the release of this tree in a clone, has its workflow push the tags of the modules, and Go fetch them
// into a module proxy made of files. It takes the way of a new user with nothing else of this repository: the program is
// installed, it makes a project, whose tests run, and what the project takes home is counted. With HOOKGATE_REHEARSAL, as
// `make release-rehearsal` runs it, it makes all files and packages of the release, and publishes and uses them, too.
func TestRelease(t *testing.T) {
	process.Program(t, "HOOKGATE_PACKAGES")
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	u := &user{filepath.Join(place, "repository"), outside(repository, "GOWORK=off", "GOFLAGS=-modcacherw -trimpath",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")}
	u.env = slices.DeleteFunc(u.env, func(variable string) bool { return strings.HasPrefix(variable, "MAKE") })
	clone(t, repository, u)
	said := u.run(t, "make -s release-tags VERSION="+release)
	t.Log("make release-tags says:\n" + said)
	if !strings.Contains(said, "\n  git push origin "+release+"\n") || !strings.Contains(said, ": "+strings.Join(tags, " ")+"\n") {
		t.Errorf("it does not name the tags %q, or to push the one of the program", tags)
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
	if out, err := u.command(t, "scripts/publish go main").CombinedOutput(); err == nil || !strings.Contains(string(out), "no commit of scripts/release-tags") {
		t.Errorf("modules that replace each other are published: %v\n%s", err, out)
	}
	// The workflow has a clone of the tag alone, and whoever makes the release has pushed nothing else.
	origin := filepath.Join(place, "origin.git")
	u.run(t, "git clone -q --bare . "+origin+" && git -C "+origin+" tag -l | grep -v ^v | xargs git -C "+origin+" tag -d"+
		" && cd .. && rm -rf repository && git clone -q "+origin+" repository && git -C repository checkout -q "+release)
	w := &workflow{user: u, place: place, origin: origin}
	w.job(t, "modules")
	if out := u.run(t, "git ls-remote --tags origin | cut -f 1 | sort -u | wc -l; git ls-remote --tags origin | wc -l"); out != "1\n4\n" {
		t.Errorf("the commits and the tags of origin are %q", out)
	}
	u.publish(t, w)
	// The sums in go.sum are those of what Go fetches, and nothing is missing.
	u.run(t, "for dir in gen/go sdk . cmd/hookgate-render; do go -C $dir mod tidy -diff; done")
	// What builds the files of the release, and tests, does so with the modules beside it.
	u.run(t, "go -C tools list ./image; go -C examples/go list .; go -C test/extra list ./extension; go -C test/infrastructure list ./cmd/fake-cloud")
	var s *servers
	if os.Getenv("HOOKGATE_REHEARSAL") != "" {
		s = w.publishAll(t)
	}
	if t.Failed() {
		return
	}
	if err := os.RemoveAll(u.folder); err != nil {
		t.Fatal(err)
	}
	u.folder = place

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
	if s != nil {
		t.Run("Languages", func(t *testing.T) { s.languages(t, u) })
	}
}

// clone makes the folder of u a repository with the tree of this one, whose contract is that of the release.
func clone(t *testing.T, repository string, u *user) {
	t.Helper()
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
	u.run(t, "make -s release-contract && git init -q -b main && git add -A && git commit -q -m tree")
}

// fetching returns the variables with which Go fetches the modules of this repository from a clone of it.
func fetching(origin string) []string {
	return []string{
		"GOPRIVATE=" + module, "GOSUMDB=off", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=url.file://" + origin + ".insteadOf", "GIT_CONFIG_VALUE_0=https://" + module,
	}
}

// publish has Go fetch the modules of the release from origin, and from then on from a folder in place of it.
func (u *user) publish(t *testing.T, w *workflow) {
	t.Helper()
	published := filepath.Join(w.place, "published")
	fetch := &user{w.place, slices.Concat(u.env, fetching(w.origin), []string{"GOMODCACHE=" + published})}
	for _, tag := range tags {
		dir := strings.TrimSuffix(strings.TrimSuffix(tag, release), "/")
		path := strings.TrimSuffix(module+"/"+dir, "/") + "@" + release
		fetch.run(t, "go mod download "+path)
		if _, err := os.Stat(filepath.Join(published, path, "LICENSE")); err != nil {
			t.Errorf("%s: pkg.go.dev shows nothing of a module without a license: %v", path, err)
		}
	}
	bin := filepath.Join(w.place, "bin")
	u.env = append(u.env, "GOPROXY=file://"+published+"/cache/download,file://"+output(t, "go", "env", "GOMODCACHE")+"/cache/download,"+
		output(t, "go", "env", "GOPROXY"), "GONOSUMDB="+module, "GOMODCACHE="+filepath.Join(w.place, "modules"), "GOBIN="+bin,
		"PATH="+bin+":"+os.Getenv("PATH"))
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
