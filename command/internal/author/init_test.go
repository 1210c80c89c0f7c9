// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/command/internal/author"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/scaffold"
)

// madeProject makes a project, and returns its folder.
func madeProject(t *testing.T, kind, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a", name)
	got := commandtest.Hookgate(t, "", "init", kind, name, "--dir", dir)
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil || got.Code != cmdline.ExitDone {
		t.Fatalf("exit status %d, %v: %s", got.Code, err, got.ErrOut)
	}
	first := regexp.MustCompile("```sh\n(.+)\n").FindStringSubmatch(string(readme))
	if first == nil || !strings.HasSuffix(got.Out, "\n  "+first[1]+"\n") ||
		!strings.Contains(got.Out, " First:\n\n  cd "+cmdline.ShellWord(dir)+"\n") {
		t.Errorf("the first command of the README %q is not the end of\n%s", first, got.Out)
	}
	return dir
}

// runIn runs the first command in the README of a project with a shell, which finds this program as hookgate.
func runIn(t *testing.T, dir string, env ...string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(bin, "hookgate")); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	command := scaffold.FirstCommand([]scaffold.File{{Path: "README.md", Content: readme}})
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", command)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), commandtest.AsProgram+"=1", "PATH="+bin+":"+os.Getenv("PATH")), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
}

// A build that is no release says how to use its packages, in the README, too; a release says nothing of that. There is
// no clone near the project, so the first step makes one.
func TestInitWithoutRelease(t *testing.T) {
	t.Chdir(t.TempDir())
	for kind, want := range map[string]string{
		"go": "go.mod && rm go.mod.bak", "python": "export PIP_FIND_LINKS=../hookgate/out/packages",
		"typescript": "npm install ../hookgate/out/packages/hookgate-sdk-0.0.0-dev.tgz",
		"java":       "install-file -Dfile=../hookgate/out/packages/hookgate-0.0.0-dev.jar", "rust": `.hookgate.path = "../hookgate/sdk/rust"`,
		"rule": "", "job": "",
	} {
		dir := filepath.Join(t.TempDir(), "acme")
		got := commandtest.Hookgate(t, "", "init", kind, "acme", "--dir", dir)
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		if err != nil || !strings.Contains(got.Out, want) || !strings.Contains(string(readme), want) {
			t.Errorf("%s: %v; no %q in\n%s\nand\n%s", kind, err, want, got.Out, readme)
		}
		for _, about := range []string{"is not a release", "\n  git clone -q https://github.com/hookgate/hookgate ../hookgate && "} {
			if says := strings.Contains(got.Out, about); says != (want != "") {
				t.Errorf("%s: says %q: %t", kind, about, says)
			}
		}
		// CI makes the clone where the project looks for it, and runs the same commands.
		workflow, err := os.ReadFile(filepath.Join(dir, ".github/workflows/ci.yaml"))
		var parsed any
		if err == nil {
			err = yaml.Unmarshal(workflow, &parsed)
		}
		clone, made := "../hookgate", "" // the changes of go.mod and of .cargo are in the repository
		switch kind {
		case "rule", "job":
			clone = `"$RUNNER_TEMP/hookgate"`
		case "python", "typescript", "java":
			made = "    - run: make -C ../hookgate packages-" + kind + " && "
		}
		installs := " && go -C " + clone + " install ./cmd/hookgate"
		if err != nil || !strings.Contains(string(workflow), "/hookgate/hookgate "+clone+" && ") ||
			!strings.Contains(string(workflow), installs) || !strings.Contains(string(workflow), made) {
			t.Errorf("%s: %v; no %q or %q in\n%s", kind, err, installs, made, workflow)
		}
		if says := strings.Contains(string(readme), "`EXTENSION_ADDRESS`"); says != (want != "") {
			t.Errorf("%s: the README names the variable of the address: %t", kind, says)
		}
		v := author.Pinned(cmdline.BuildInfo{Version: "v1.2.3"})
		if steps := v.Steps(kind); len(steps) > 0 {
			t.Errorf("%s of a release has %q", kind, steps)
		}
	}
}

// The commands lead from the project to a clone that the project is in, that the working directory is in, or that lies
// beside the project.
func TestInitNearClone(t *testing.T) {
	home := t.TempDir()
	elsewhere := filepath.Join(t.TempDir(), "link") // its parent is not that of home
	for _, dir := range []string{"src/clone/docs", "hookgate", "work"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, clone := range []string{"src/clone", "hookgate"} {
		text := []byte("module github.com/hookgate/hookgate\n\ngo 1.26.0\n")
		if err := os.WriteFile(filepath.Join(home, clone, "go.mod"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(home, "work"), elsewhere); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ at, dir, want string }{
		"InClone":     {"src/clone", "acme", ".."},
		"DeepInClone": {"src/clone/docs", "a/acme", "../../.."},
		"FromClone":   {"src/clone", "../../work/acme", "../../src/clone"},
		"ByLink":      {"src/clone", filepath.Join(elsewhere, "acme-2"), "../../src/clone"},
		"Beside":      {"work", "../acme", "../hookgate"},
	} {
		t.Chdir(filepath.Join(home, tt.at))
		got := commandtest.Hookgate(t, "", "init", "go", "acme", "--dir", tt.dir)
		readme, err := os.ReadFile(filepath.Join(tt.dir, "README.md"))
		step := "go mod edit -replace github.com/hookgate/hookgate/sdk=" + tt.want + "/sdk\n"
		if err != nil || !strings.Contains(got.Out, "  "+step) || !strings.Contains(string(readme), "$ "+step) {
			t.Errorf("%s: %v; no %q in\n%s\nand\n%s", name, err, step, got.Out, readme)
		}
		workflow, err := os.ReadFile(filepath.Join(tt.dir, ".github/workflows/ci.yaml"))
		into := tt.want
		if strings.HasSuffix(into, "..") { // CI has no clone around the project
			into = `"$RUNNER_TEMP/hookgate"`
		}
		if err != nil || !strings.Contains(string(workflow), " && go -C "+into+" install ") {
			t.Errorf("%s: %v; no clone in %s:\n%s", name, err, into, workflow)
		}
		if strings.Contains(got.Out, "git clone") {
			t.Errorf("%s: there is a clone already:\n%s", name, got.Out)
		}
	}
}

// A program that was started by its path is put into PATH, for the commands of the README.
func TestInitInPath(t *testing.T) {
	dir := t.TempDir()
	self := filepath.Join(dir, "hookgate")
	if err := os.WriteFile(self, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	export := []string{"export PATH=" + cmdline.ShellWord(dir) + `:"$PATH"`}
	for name, tt := range map[string]struct {
		program, self, path string
		want                []string
	}{
		"ByPath":    {"bin/hookgate", self, "", export},
		"ByName":    {"hookgate", self, "", nil},
		"InPath":    {"bin/hookgate", self, dir, nil},
		"OtherName": {"bin/acme-hooks", filepath.Join(dir, "acme-hooks"), "", nil},
		"Plugin":    {"kubectl hookgate", filepath.Join(dir, "kubectl-hookgate"), "", nil},
	} {
		t.Setenv("PATH", tt.path)
		if diff := cmp.Diff(tt.want, author.InPath(tt.program, tt.self)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A rule and a job pass their own tests, and lint.
func TestInitWithoutServer(t *testing.T) {
	for _, kind := range []string{"rule", "job"} {
		dir := madeProject(t, kind, "my-project")
		runIn(t, dir)
		if got := commandtest.Hookgate(t, "", "lint", filepath.Join(dir, kind+".yaml")); got.Code != cmdline.ExitDone || strings.Contains(got.ErrOut+got.Out, "my-project\": ") && kind == "rule" {
			t.Errorf("lint %s: exit status %d: %s%s", kind, got.Code, got.Out, got.ErrOut)
		}
	}
}

// The manifests of an extension are those of deploy/overlays/sidecar, and its registration passes lint.
func TestInitManifests(t *testing.T) {
	for _, kind := range []string{"go", "python", "typescript", "java", "rust"} {
		dir := madeProject(t, kind, "acme")
		for _, name := range []string{"extension.yaml", "certificate.yaml"} {
			want, err := os.ReadFile(filepath.Join("../../../deploy/overlays/sidecar", name))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "deploy", name))
			if diff := cmp.Diff(string(want), string(got)); diff != "" || err != nil {
				t.Errorf("%s of %s: %v (-want +got):\n%s", name, kind, err, diff)
			}
		}
		if got := commandtest.Hookgate(t, "", "lint", filepath.Join(dir, "deploy", "register.yaml")); got.Code != cmdline.ExitDone {
			t.Errorf("lint of %s: exit status %d: %s", kind, got.Code, got.Out)
		}
	}
}

// The workflows of all projects use the actions of this repository, by their digests.
func TestInitWorkflows(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^    - uses: .*$`)
	own, err := os.ReadFile("../../../.github/workflows/ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range scaffold.Kinds() {
		workflow, err := os.ReadFile(filepath.Join(madeProject(t, kind, "acme"), ".github/workflows/ci.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range uses.FindAllString(string(workflow), -1) {
			if !slices.Contains(uses.FindAllString(string(own), -1), line) {
				t.Errorf("%s: %s is not in this repository's workflow", kind, line)
			}
		}
	}
}

func TestInitRefuses(t *testing.T) {
	there := t.TempDir()
	if err := os.WriteFile(filepath.Join(there, "test.yaml"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		code int
		want string
	}{
		"NoName":   {[]string{"rule"}, cmdline.ExitUsage, "want a kind of project and a name, got 1 arguments; the kinds are rule, job, go, python, typescript, java, rust"},
		"NoKind":   {[]string{"cobol", "a"}, cmdline.ExitUsage, `no project of kind "cobol": want one of rule, job, go, python, typescript, java, rust`},
		"Name":     {[]string{"rule", "../a"}, cmdline.ExitUsage, `name "../a" must be a DNS label (lower case letters, digits and -) that begins with a letter`},
		"Digit":    {[]string{"rule", "1a"}, cmdline.ExitUsage, `name "1a" must be a DNS label (lower case letters, digits and -) that begins with a letter`},
		"LongName": {[]string{"rule", strings.Repeat("a", 51)}, cmdline.ExitUsage, "must have at most 50 characters"},
		"Module":   {[]string{"rule", "a", "--module", "x.example/a"}, cmdline.ExitUsage, "--module is for projects in Go"},
		"NoModule": {[]string{"go", "a", "--module", "a b"}, cmdline.ExitUsage, `--module "a b": want the path of a module, such as github.com/acme/a`},
		"Exists":   {[]string{"rule", "a", "--dir", there}, cmdline.ExitFailed, filepath.Join(there, "test.yaml") + " already exists, so nothing was written"},
	} {
		got := commandtest.Hookgate(t, "", append([]string{"init"}, tt.args...)...)
		if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) || got.Out != "" {
			t.Errorf("%s: exit status %d, want %q in\n%s%s", name, got.Code, tt.want, got.ErrOut, got.Out)
		}
	}
	if left, err := os.ReadDir(there); err != nil || len(left) != 1 {
		t.Errorf("something was written: %v, %v", left, err)
	}
}

// The pins are those of the release, or of the commit if the build is none.
func TestPinned(t *testing.T) {
	for version, want := range map[string]scaffold.Values{
		"v1.2.3":            {Ref: "v1.2.3", ImageTag: "v1.2.3", Python: "1.2.3", NPM: "1.2.3"},
		"v1.2.3-rc.1":       {Ref: "v1.2.3-rc.1", ImageTag: "v1.2.3-rc.1", Python: "1.2.3-rc.1", NPM: "1.2.3-rc.1"},
		"v1.2.3-4-gabcdef0": {Ref: "c0ffee", ImageTag: "dev", Python: "0.0.0.dev0", NPM: "0.0.0-dev"},
		"v1.2.3-dirty":      {Ref: "c0ffee", ImageTag: "dev", Python: "0.0.0.dev0", NPM: "0.0.0-dev"},
		"(devel)":           {Ref: "c0ffee", ImageTag: "dev", Python: "0.0.0.dev0", NPM: "0.0.0-dev"},
	} {
		got := author.Pinned(cmdline.BuildInfo{Version: version, Commit: "c0ffee"})
		install := "go install github.com/hookgate/hookgate/cmd/hookgate@" + version
		if want.ImageTag == "dev" {
			install = " checkout -q c0ffee && "
		}
		if !strings.Contains(got.Install, install) {
			t.Errorf("%s is installed with %q, want %q", version, got.Install, install)
		}
		got.Go, got.Install = "", ""
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
	// The go command puts no commit into a program that it installs, but for the end of its version.
	for version, want := range map[string]string{
		"(devel)":                              "main",
		"v0.0.0-20261126045440-5874e898abcd":   "5874e898abcd",
		"v1.2.4-0.20261126045440-5874e898abcd": "5874e898abcd",
	} {
		if got := author.Pinned(cmdline.BuildInfo{Version: version, Commit: "unknown"}); got.Ref != want || got.ImageTag != "dev" {
			t.Errorf("%s is pinned as %s, %s, want %s", version, got.Ref, got.ImageTag, want)
		}
	}
}
