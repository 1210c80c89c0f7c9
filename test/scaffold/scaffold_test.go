// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// answer is what the handler of every project says to the example of a request.
const answer = "waits for the annotation example.com/approved: v1."

// user is a person with a new project: a folder outside of the repository, and an environment with nothing of it.
type user struct {
	folder string
	env    []string
}

// newUser makes a folder with a project, by the command that the documentation has, and an environment in which
// hookgate is in PATH.
func newUser(t *testing.T, kind string) *user {
	t.Helper()
	program, packages := process.Program(t, "HOOKGATE_BIN"), process.Program(t, "HOOKGATE_PACKAGES")
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	bin := filepath.Join(place, "bin")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "hookgate"), content, 0o700); err != nil {
		t.Fatal(err)
	}
	u := &user{place, outside(repository, registry(t, repository, packages, place)...)}
	u.env = append(u.env,
		"PATH="+bin+":"+os.Getenv("PATH"),
		// The packages that Go downloads come into a folder that is removed. Others of this module are in the usual one.
		"GOMODCACHE="+filepath.Join(place, "modules"), "GOFLAGS=-modcacherw -trimpath", "GOWORK=off",
	)
	u.run(t, "hookgate init "+kind+" acme")
	u.folder = filepath.Join(place, "acme")
	return u
}

func (u *user) command(t *testing.T, line string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-euc", line)
	cmd.Dir, cmd.Env = u.folder, u.env
	return cmd
}

// run runs a line of commands with a shell, and returns what it prints.
func (u *user) run(t *testing.T, line string) string {
	t.Helper()
	out, err := u.command(t, line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// start starts a line of the README that ends with &, as a group of processes like the jobs of an interactive shell. At
// the end of the test, SIGTERM must end it with the exit status 0.
func (u *user) start(t *testing.T, line string) *process.Process {
	t.Helper()
	line, background := strings.CutSuffix(line, " &")
	if !background {
		t.Fatalf("%q does not end with &", line)
	}
	cmd := exec.Command("sh", "-euc", "exec "+line) // the test's context ends before it is stopped
	cmd.Dir, cmd.Env = u.folder, u.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	job := process.Run(t, line, cmd)
	t.Cleanup(func() {
		defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // what it has left behind
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Errorf("stop %s: %v", line, err)
		}
		if code := job.ExitCode(t); code != 0 {
			t.Errorf("%s: exit status %d after SIGTERM, want 0:%s", line, code, job.LogTail())
		}
	})
	return job
}

// readme returns the blocks of commands in the README, as lines.
func (u *user) readme(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(u.folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][]string
	for _, match := range regexp.MustCompile("(?s)```sh\n(.*?)\n```").FindAllSubmatch(text, -1) {
		blocks = append(blocks, strings.Split(string(match[1]), "\n"))
	}
	return blocks
}

// tested matches what the first command of a project's README prints when its tests have passed.
var tested = map[string]string{
	"go":         `(?m)^ok\s+example.com/acme\s`,
	"python":     `(?m)^=+ 4 passed`,
	"typescript": `(?m)^# pass 2$`,
	"java":       `Tests run: 3, Failures: 0, Errors: 0, Skipped: 0`,
	"rust":       `test result: ok. 3 passed`,
}

// An extension in each language is made, tested, started, called, checked and stopped by the commands of its README.
func TestLanguages(t *testing.T) {
	for language := range tested {
		t.Run(language, func(t *testing.T) {
			u := newUser(t, language)
			switch language {
			case "java":
				u.installJava(t)
			case "rust":
				u.installRust(t)
			}
			u.extension(t, tested[language])
		})
	}
}

// installJava installs the package under test into a local repository of Maven that no other build of it is in, by the
// command that hookgate init prints.
func (u *user) installJava(t *testing.T) {
	t.Helper()
	place := filepath.Dir(u.folder)
	u.env = append(u.env, "MAVEN_OPTS=-Dmaven.repo.local="+filepath.Join(place, "m2"))
	u.run(t, "mkdir ../m2; [ ! -d ~/.m2/repository ] || cp -R ~/.m2/repository/. ../m2; rm -rf ../m2/dev/hookgate")
	readme, err := os.ReadFile(filepath.Join(u.folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^\$ (mvn .*)$`).FindSubmatch(readme)
	if line == nil {
		t.Fatalf("no command of Maven in\n%s", readme)
	}
	packages := process.Program(t, "HOOKGATE_PACKAGES")
	u.run(t, strings.ReplaceAll(string(line[1]), "../hookgate/out/packages", packages))
}

// installRust lets the project use the crate under test, by the commands that hookgate init prints.
func (u *user) installRust(t *testing.T) {
	t.Helper()
	u.env = append(u.env, "CARGO_INCREMENTAL=0", "CARGO_PROFILE_DEV_DEBUG=0") // half of the time that compiling takes
	crate := only(t, process.Program(t, "HOOKGATE_PACKAGES"), "hookgate-*.crate")
	u.run(t, "mkdir ../crate && tar -xzf "+crate+" -C ../crate --strip-components 1")
	readme, err := os.ReadFile(filepath.Join(u.folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^\$ (mkdir .*|echo .*)$`).FindAllSubmatch(readme, -1)
	if len(lines) != 2 {
		t.Fatalf("no commands for Cargo in\n%s", readme)
	}
	for _, line := range lines {
		u.run(t, strings.ReplaceAll(string(line[1]), "../hookgate/sdk/rust", "../crate"))
	}
}

// extension follows the README of a project.
func (u *user) extension(t *testing.T, tested string) {
	t.Helper()
	// The port of the README may be taken.
	address := fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
	u.env = append(u.env, "EXTENSION_ADDRESS="+address)
	blocks := u.readme(t)
	if out := u.run(t, blocks[0][0]); !regexp.MustCompile(tested).MatchString(out) {
		t.Errorf("want a match of %q in\n%s", tested, out)
	}
	try := blocks[1]
	for i := range try {
		try[i] = strings.ReplaceAll(try[i], "127.0.0.1:9090", address)
	}
	job := slices.IndexFunc(try, func(line string) bool { return strings.HasSuffix(line, " &") })
	for _, line := range try[:job] {
		u.run(t, line)
	}
	u.start(t, try[job]).Expect(t, "listening on "+address)
	if out := u.run(t, try[job+1]); !strings.Contains(out, answer) {
		t.Errorf("%s: want %q in\n%s", try[job+1], answer, out)
	}
	u.check(t, try[job+2])
}

// check runs a command that checks an extension until it is stopped.
func (u *user) check(t *testing.T, line string) {
	t.Helper()
	check := process.Run(t, "check", u.command(t, "exec "+line))
	check.Expect(t, "[1-9][0-9]* passed, 0 failed, 0 warnings")
	check.EndWell(t)
}

// A rule is tested, linted, served and called by the commands of its README.
func TestRule(t *testing.T) {
	u := newUser(t, "rule")
	u.env = append(u.env, "HOOKGATE_CERT_DIR="+filepath.Join(u.folder, "..", "certificates"))
	blocks := u.readme(t)
	if out := u.run(t, blocks[0][0]+"; hookgate lint rule.yaml"); strings.Count(out, " ok\n") != 3 {
		t.Errorf("want three cases in\n%s", out)
	}
	https := fmt.Sprintf("127.0.0.1:%d", process.FreePort(t))
	u.env = append(u.env, "HOOKGATE_HTTP_ADDRESS="+https, "HOOKGATE_GRPC_ADDRESS=127.0.0.1:0",
		"HOOKGATE_DIAGNOSTICS_ADDRESS=127.0.0.1:0", "HOOKGATE_SERVER=https://"+https)
	gateway := u.start(t, blocks[1][0])
	ca := gateway.Expect(t, `--ca (\S+)`)[1]
	line := strings.ReplaceAll(blocks[1][1], "--ca CA", "--ca "+ca)
	if out := u.run(t, line); !strings.Contains(out, answer) {
		t.Errorf("%s: want %q in\n%s", line, answer, out)
	}
}

// The script of a job is tested, and the job linted, without a cluster.
func TestJob(t *testing.T) {
	u := newUser(t, "job")
	if out := u.run(t, u.readme(t)[0][0]+"; hookgate lint job.yaml"); !strings.Contains(out, "2 cases passed") {
		t.Errorf("want both cases in\n%s", out)
	}
}
