// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const guide = "../../docs/extensions.md"

// TestGuide follows the guide: for each language it runs every `sh` block of the common sections and of the language's
// own, in one shell and in the folder in which the guide begins. A block with file= in its first line is that file; a
// `text` block is the output of the `sh` block before it, in which … stands for any text. Only the ports are changed,
// because other programs may use them.
func TestGuide(t *testing.T) {
	hookgate := gatewayPath(t)
	sections := readGuide(t, guide)
	for _, language := range sections {
		if language.parent != "2. Implement a hook" {
			continue
		}
		t.Run(language.title, func(t *testing.T) {
			script, expected := write(sections, language.title, "hookgate call Discovery --server grpc://127.0.0.1:9090")
			dir, repository := beside(t)
			if want := filepath.Join(repository, "bin", "hookgate"); hookgate != want {
				t.Fatalf("HOOKGATE_BIN is %s, but the guide uses %s", hookgate, want)
			}
			https, diagnostics, extension := freeAddress(t), freeAddress(t), freeAddress(t)
			ports := strings.NewReplacer("9443", port(t, https), "9090", port(t, extension))
			follow(t, followed{
				dir: dir, script: script, expected: expected, ports: ports, limit: 15 * time.Minute, // from packages to compiled programs
				env: []string{
					"HOOKGATE_HTTP_ADDRESS=" + https, "HOOKGATE_DIAGNOSTICS_ADDRESS=" + diagnostics,
					// Reuse the example's compiled dependencies; compiling them would need minutes.
					"CARGO_TARGET_DIR=" + filepath.Join(repository, "examples", "rust", "target"),
				},
			})
		})
	}
}

// beside returns a folder in which the repository is the folder hookgate.
func beside(t *testing.T) (dir, repository string) {
	t.Helper()
	dir = t.TempDir()
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(repository, filepath.Join(dir, "hookgate")); err != nil {
		t.Fatal(err)
	}
	return dir, repository
}

// followed is a page that is followed in a folder.
type followed struct {
	dir, script string
	expected    map[int]string // the output of blocks
	ports       *strings.Replacer
	env         []string
	limit       time.Duration
}

// follow runs the script of a page, and looks at what its blocks have printed.
func follow(t *testing.T, p followed) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), p.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", p.ports.Replace(p.script))
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // and what it left running
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, lastOutput(p.dir))
	}
	for block, want := range p.expected {
		got, err := os.ReadFile(filepath.Join(p.dir, fmt.Sprintf("out.%d", block)))
		if err != nil {
			t.Fatal(err)
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(p.ports.Replace(want)), "…", ".+")
		if !regexp.MustCompile(pattern).MatchString(string(got) + "\n") {
			t.Errorf("the page says that a block prints\n%s\nand it prints\n%s", want, got)
		}
	}
}

// The guide shows this, but the test does not run it.
func TestGuideBlocksThatAreNotRun(t *testing.T) {
	var got []string
	for _, s := range readGuide(t, guide) {
		for _, b := range s.blocks {
			if !slices.Contains([]string{"sh", "text"}, b.language) && b.file == "" {
				got = append(got, b.language+": "+strings.TrimSpace(b.text))
			}
		}
	}
	want := []string{
		// It needs the network; a test has the repository and the program already.
		"console: $ git clone https://github.com/hookgate/hookgate\n$ make -C hookgate build",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("blocks that are not run (-want +got):\n%s", diff)
	}
}

// The guide has a section for every example.
func TestGuideLanguages(t *testing.T) {
	names := map[string]string{"go": "Go", "python": "Python", "typescript": "TypeScript", "java": "Java",
		"rust": "Rust"}
	var want, got []string
	for _, language := range languages {
		want = append(want, names[language])
	}
	for _, s := range readGuide(t, guide) {
		if s.parent != "" {
			got = append(got, s.title)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("languages (-examples +guide):\n%s", diff)
	}
}

// lastOutput returns the output of the last block that was started.
func lastOutput(dir string) (text []byte) {
	for n := 1; ; n++ {
		more, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out.%d", n)))
		if err != nil {
			return text
		}
		text = more
	}
}

// port returns the port of an address.
func port(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

type section struct {
	title, parent string // parent is the section above one of the third level
	blocks        []block
}

type block struct {
	language, file, text string
}

// readGuide reads the sections and fenced blocks of a page.
func readGuide(t *testing.T, page string) []section {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sections := []section{{}}
	above := ""
	var open *block
	for line := range strings.Lines(string(data)) {
		fence, isFence := strings.CutPrefix(line, "```")
		last := &sections[len(sections)-1]
		switch {
		case open != nil && isFence:
			last.blocks = append(last.blocks, *open)
			open = nil
		case open != nil:
			open.text += line
		case isFence:
			language, rest, _ := strings.Cut(strings.TrimSpace(fence), " ")
			open = &block{language: language, file: strings.TrimPrefix(rest, "file=")}
		case strings.HasPrefix(line, "## "):
			above = strings.TrimSpace(line[3:])
			sections = append(sections, section{title: above})
		case strings.HasPrefix(line, "### "):
			sections = append(sections, section{title: strings.TrimSpace(line[4:]), parent: above})
		}
	}
	if open != nil {
		t.Fatalf("%s ends within a block", page)
	}
	return sections
}

// write returns the commands for one language as a script, and the expected contents of its output files out.N. started
// is a command that succeeds when an extension has started.
func write(sections []section, language, started string) (script string, expected map[int]string) {
	var b strings.Builder
	b.WriteString("set -euo pipefail\nroot=$PWD\n")
	expected = map[int]string{}
	n := 0
	for _, s := range sections {
		if s.parent != "" && s.title != language {
			continue
		}
		for _, block := range s.blocks {
			switch {
			case block.file != "":
				fmt.Fprintf(&b, "cat > '%s' <<'END OF FILE'\n%sEND OF FILE\n", block.file, block.text)
			case block.language == "sh":
				n++
				fmt.Fprintf(&b, "{\n%s} > \"$root/out.%d\"\n", block.text, n)
				// A person would type the next command more slowly than a server starts.
				switch {
				case strings.Contains(block.text, "hookgate serve"):
					b.WriteString(await(`curl --silent --fail --output /dev/null "http://$HOOKGATE_DIAGNOSTICS_ADDRESS/readyz"`))
				case strings.HasSuffix(block.text, "&\n"):
					b.WriteString(await(started + " > /dev/null 2>&1"))
				}
			case block.language == "text":
				expected[n] = block.text
			}
		}
	}
	b.WriteString("wait || true\n") // for what the guide stopped, so a script that left something running does not end
	return b.String(), expected
}

// await returns commands that wait until check succeeds.
func await(check string) string {
	return fmt.Sprintf("for i in $(seq 600); do %s && break; kill -0 $! && [ $i -lt 600 ] || { echo 'not started'; exit 1; }; sleep 0.1; done\n", check)
}
