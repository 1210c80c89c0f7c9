// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/process"
)

// workflow runs the steps of release.yml, in the folder of user, that call commands of this repository.
type workflow struct {
	user          *user
	place, origin string
	// given has a value for each variable that release.yml sets from an expression.
	given map[string]string
	// clients are variables with which the clients of registries use those of the rehearsal.
	clients []string
}

// ours matches the steps that the rehearsal runs. The others need GitHub.
var ours = regexp.MustCompile(`(?m)^(?:make|scripts/\S+) `)

// job runs the steps of a job that call make or scripts/, with the variables that the workflow gives them.
func (w *workflow) job(t *testing.T, name string) {
	t.Helper()
	type environment struct {
		Env map[string]string `json:"env"`
	}
	var parsed struct {
		environment
		Jobs map[string]struct {
			environment
			Steps []struct {
				environment
				Uses string         `json:"uses"`
				Run  string         `json:"run"`
				With map[string]any `json:"with"`
			} `json:"steps"`
		} `json:"jobs"`
	}
	if err := yaml.Unmarshal(read(t, w.user.folder, ".github", "workflows", "release.yml"), &parsed); err != nil {
		t.Fatal(err)
	}
	job, ran := parsed.Jobs[name], 0
	for _, step := range job.Steps {
		if strings.HasPrefix(step.Uses, "pypa/") && step.With["packages-dir"] != "out/pypi" {
			t.Errorf("PyPI gets %v, and the rehearsal tries out/pypi", step.With["packages-dir"])
		}
		if !ours.MatchString(step.Run) {
			continue
		}
		env := slices.Concat(w.user.env, w.clients)
		for _, variables := range []map[string]string{parsed.Env, job.Env, step.Env} {
			for key, value := range variables {
				if strings.Contains(value, "${{") {
					value = w.given[key]
					if key == "VERSION" {
						value = release
					}
				}
				env = append(env, key+"="+value)
				if key == "CARGO_REGISTRY_TOKEN" { // has this name for crates.io alone
					env = append(env, "CARGO_REGISTRIES_REHEARSAL_TOKEN="+value)
				}
			}
		}
		env = append(env, "RUNNER_TEMP="+w.place)
		if name == "modules" {
			env = append(env, fetching(w.origin)...)
		}
		start := time.Now()
		cmd := exec.CommandContext(t.Context(), "bash", "-ec", step.Run)
		cmd.Dir, cmd.Env = w.user.folder, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("job %s: %s: %v\n%s", name, step.Run, err, out)
		}
		t.Logf("job %s: %s: %s", name, strings.ReplaceAll(strings.TrimSpace(step.Run), "\n", "; "), time.Since(start).Round(time.Second))
		ran++
	}
	if ran == 0 {
		t.Errorf("job %s runs nothing of this repository", name)
	}
}

// publishAll runs all jobs after that of the modules, and checks the files of the release and what registries got.
func (w *workflow) publishAll(t *testing.T) *servers {
	t.Helper()
	u := w.user
	s := serve(t, w)
	w.job(t, "packages")
	w.job(t, "release")
	s.pypi = filepath.Join(u.folder, "out", "pypi")
	for _, registry := range []string{"pypi", "npm", "maven", "crates"} {
		w.job(t, registry)
	}
	t.Log("out/ has:\n" + u.run(t, "cd out && ls -sSh --block-size=K | head -60; ls -sS --block-size=K packages"))
	// The files of the release, and those that pages name.
	u.run(t, "cd out && sha256sum --quiet --check --strict SHA256SUMS")
	sums := string(read(t, u.folder, "out", "SHA256SUMS"))
	named := regexp.MustCompile(`[a-z-]+\.spdx\.json`).FindAllString(string(read(t, u.folder, "docs", "deploy.md")), -1)
	if len(named) < 2 {
		t.Errorf("the page names %q, want both SBOMs", named)
	}
	for _, file := range named {
		if !strings.Contains(sums, "  "+file+"\n") {
			t.Errorf("the release lacks %s, which the page names", file)
		}
	}
	// The SBOM of the image is about the programs in it.
	for _, platform := range []string{"linux-amd64", "linux-arm64"} {
		if _, err := u.command(t, "cmp bin/image/hookgate-"+platform+" out/hookgate-"+platform).CombinedOutput(); err != nil {
			t.Errorf("the image has another hookgate-%s than the release, whose SBOM it has", platform)
		}
	}
	pypi := filepath.Join(w.place, "pypi") // which stays
	if err := os.CopyFS(pypi, os.DirFS(s.pypi)); err != nil {
		t.Fatal(err)
	}
	s.pypi = pypi
	t.Run("PyPI", func(t *testing.T) { s.checkPyPI(t, u) })
	t.Run("npm", func(t *testing.T) { s.checkNPM(t, u) })
	t.Run("Maven", func(t *testing.T) { s.checkMaven(t) })
	t.Run("Crates", func(t *testing.T) { s.checkCrates(t, u) })
	return s
}

// zipped returns the files of a zip archive by name.
func zipped(t *testing.T, path string) map[string]*zip.File {
	t.Helper()
	content := read(t, path)
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	files := map[string]*zip.File{}
	for _, file := range archive.File {
		files[file.Name] = file
	}
	return files
}

// want reports the names that files lacks, and the files that match not.
func want[F any](t *testing.T, files map[string]F, not string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, ok := files[name]; !ok {
			t.Errorf("there is no %s among %d files", name, len(files))
		}
	}
	for name := range files {
		if regexp.MustCompile(not).MatchString(name) {
			t.Errorf("%s is for nobody who installs the package", name)
		}
	}
}

// checkPyPI reads the metadata of the wheel as PyPI does, with the library that it uses.
func (s *servers) checkPyPI(t *testing.T, u *user) {
	wheel := only(t, s.pypi, "*")
	if filepath.Base(wheel) != "hookgate-0.1.0-py3-none-any.whl" {
		t.Errorf("PyPI gets %s", wheel)
	}
	info := "hookgate-0.1.0.dist-info/"
	want(t, zipped(t, wheel), `test_|\.proto$|^build/|/tests/`, info+"METADATA", info+"licenses/LICENSE", "hookgate/py.typed",
		"hookgate/__init__.py", "hookgate/hooks/v1alpha1/__init__.py")
	u.run(t, `sdk/python/build/venv/bin/python - <<'END'
import sys, zipfile
from packaging.metadata import Metadata
text = zipfile.ZipFile("`+wheel+`").read("`+info+`METADATA")
m = Metadata.from_email(text, validate=True)
assert (m.name, str(m.version), m.license_expression, m.license_files) == ("hookgate", "0.1.0", "Apache-2.0", ["LICENSE"]), text
assert m.description_content_type == "text/markdown" and m.description == open("sdk/python/README.md").read(), m.description_content_type
assert m.summary and m.requires_python and {"grpcio", "protobuf"} <= {r.name for r in m.requires_dist}, text
assert {"homepage", "documentation", "changelog"} <= {k.lower() for k in m.project_urls}, m.project_urls
END`)
}

func (s *servers) checkNPM(t *testing.T, u *user) {
	text, err := json.Marshal(s.npm.document)
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Name, Readme string
		Access       string
		Tags         map[string]string `json:"dist-tags"`
		Versions     map[string]struct {
			Version, License, Description, Homepage string
			Repository                              map[string]string
			Dependencies, DevDependencies           map[string]string
			Exports                                 map[string]string
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	v := document.Versions["0.1.0"]
	if document.Name != npmPackage || document.Access != "public" || document.Tags["latest"] != "0.1.0" || v.Version != "0.1.0" ||
		v.License != "Apache-2.0" || v.Description == "" || v.Homepage == "" || len(v.DevDependencies) != 0 || len(v.Dependencies) != 3 {
		t.Errorf("npm gets %+v", document)
	}
	// npm compares it with the repository that the provenance names.
	if v.Repository["url"] != "git+https://"+module+".git" {
		t.Errorf("the repository is %q", v.Repository)
	}
	if !bytes.Equal(s.npm.archive, read(t, u.folder, "out", "packages", "hookgate-sdk-0.1.0.tgz")) {
		t.Error("npm gets another archive than make packages has written")
	}
	files := map[string]bool{}
	for file := range strings.FieldsSeq(u.run(t, "tar -tzf out/packages/hookgate-sdk-0.1.0.tgz")) {
		files[file] = true
	}
	names := []string{"package/package.json", "package/README.md", "package/LICENSE"}
	for _, export := range v.Exports {
		name := "package/" + strings.TrimPrefix(export, "./")
		names = append(names, name, strings.TrimSuffix(name, ".js")+".d.ts")
	}
	want(t, files, `package/(src|test|build|node_modules)|tsconfig`, names...)
}

// checkMaven checks what Maven Central requires. The server has checked sums and signatures.
func (s *servers) checkMaven(t *testing.T) {
	dir := filepath.Join(s.maven, "dev/hookgate/hookgate/0.1.0")
	base := filepath.Join(dir, "hookgate-0.1.0")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 16 {
		t.Errorf("Maven Central gets %d files, want 4, each with its signature and sums: %v", len(entries), err)
	}
	want(t, zipped(t, base+".jar"), `Test\.class$|\.java$`, "META-INF/LICENSE", "dev/hookgate/Server.class")
	want(t, zipped(t, base+"-sources.jar"), `Test\.java$|\.class$`, "META-INF/LICENSE", "dev/hookgate/Server.java",
		"dev/hookgate/hooks/v1alpha1/BeforeClusterCreateRequest.java")
	want(t, zipped(t, base+"-javadoc.jar"), `\.class$`, "index.html", "dev/hookgate/Server.html")
	pom := string(read(t, base+".pom"))
	for _, element := range []string{
		"<groupId>dev.hookgate<", "<artifactId>hookgate<", "<version>0.1.0<", "<name>", "<description>", "<url>", "<license>", "<developer>",
		"<scm>", "<connection>",
	} {
		if !strings.Contains(pom, element) {
			t.Errorf("the POM lacks %s", element)
		}
	}
	if strings.Contains(pom, "SNAPSHOT") || strings.Contains(pom, "0.0.0-dev") {
		t.Error("the POM names versions that are no releases")
	}
}

func (s *servers) checkCrates(t *testing.T, u *user) {
	m := s.crates.manifest
	if m.Name != "hookgate" || m.Version != "0.1.0" || m.License != "Apache-2.0" || m.Description == "" || m.Repository == "" ||
		m.Documentation == "" || len(m.Keywords) == 0 || len(m.Categories) == 0 {
		t.Errorf("crates.io gets %+v", m)
	}
	if m.Readme != string(read(t, u.folder, "sdk", "rust", "README.md")) {
		t.Errorf("the README on crates.io has %d bytes, and is not that of sdk/rust", len(m.Readme))
	}
	if !bytes.Equal(s.crates.archive, read(t, u.folder, "out", "packages", "hookgate-0.1.0.crate")) {
		t.Error("crates.io gets another crate than make packages has written")
	}
	files := map[string]bool{}
	for file := range strings.FieldsSeq(u.run(t, "tar -tzf out/packages/hookgate-0.1.0.crate")) {
		files[strings.TrimPrefix(file, "hookgate-0.1.0/")] = true
	}
	want(t, files, `^(tests|target|examples)/|vcs_info`, "Cargo.toml", "Cargo.lock", "LICENSE", "README.md", "build.rs", "src/lib.rs",
		"proto/hookgate/hooks/v1alpha1/discovery.proto")
}

// languages installs, tests, runs and checks hello in each language, in an empty folder, from the registries alone.
func (s *servers) languages(t *testing.T, u *user) {
	newcomer := func(t *testing.T, folder string) *user {
		t.Helper()
		folder = filepath.Join(u.folder, "users", folder)
		if err := os.MkdirAll(folder, 0o750); err != nil {
			t.Fatal(err)
		}
		return &user{folder, slices.Concat(u.env, s.clients(t, folder))}
	}
	for language := range tested {
		if language == "java" || language == "rust" { // below, with settings of Maven and a registry of Cargo
			continue
		}
		t.Run(language, func(t *testing.T) {
			n := newcomer(t, language)
			n.run(t, "hookgate init "+language+" acme")
			n.folder = filepath.Join(n.folder, "acme")
			start := time.Now()
			n.extension(t, tested[language])
			t.Logf("installed, tested, run and checked in %s", time.Since(start).Round(time.Second))
		})
	}
	t.Run("java", func(t *testing.T) {
		n := newcomer(t, "java")
		if err := os.CopyFS(n.folder, os.DirFS(filepath.Join("..", "..", "sdk", "java", "src", "test", "hello"))); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		// Its tests check the extension, and run the program.
		out := n.run(t, "[ ! -d ~/.m2/repository ] || cp -R ~/.m2/repository .m2 && rm -rf .m2/dev/hookgate; mvn -B -ntp --settings settings.xml -Dmaven.repo.local=$PWD/.m2 -Dhookgate.version=0.1.0 test")
		if !strings.Contains(out, "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0") {
			t.Errorf("want three tests in\n%s", out)
		}
		t.Logf("installed, tested, run and checked in %s", time.Since(start).Round(time.Second))
	})
	t.Run("rust", func(t *testing.T) {
		n := newcomer(t, "rust")
		if err := os.CopyFS(n.folder, os.DirFS(filepath.Join("..", "..", "sdk", "rust", "tests", "hello"))); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		n.run(t, "sed -i '/^hookgate = /d' Cargo.toml && cargo add --quiet hookgate@0.1.0 --registry rehearsal")
		if out := n.run(t, "cargo test --quiet"); !strings.Contains(out, "1 passed") {
			t.Errorf("want a test in\n%s", out)
		}
		address := fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
		n.run(t, "cargo build --quiet")
		n.start(t, "target/debug/hello "+address+" &").Expect(t, "listening on "+address)
		n.check(t, "hookgate check grpc://"+address+" --watch")
		t.Logf("installed, tested, run and checked in %s", time.Since(start).Round(time.Second))
	})
}
