// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/preflight"
)

const upgradingPage = "../docs/upgrading.md"

func TestMain(m *testing.M) {
	commandtest.Main(m, Run, Main)
}

// pageBlock is a fenced block of a page.
type pageBlock struct{ language, text string }

func pageBlocks(t *testing.T, page string) []pageBlock {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []pageBlock
	var open *pageBlock
	for line := range strings.Lines(string(text)) {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open != nil && isFence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.text += line
		case isFence:
			open = &pageBlock{language: strings.TrimSpace(fence)}
		}
	}
	if open != nil {
		t.Fatalf("%s ends within a block", page)
	}
	return blocks
}

// TestUpgradingPage runs every `sh` block of the page, in one folder and one after the other. The output of a `sh`
// block contains the `text` or `yaml` block after it.
func TestUpgradingPage(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"bin", "examples", "out"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../examples/upgrade")
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"bin/hookgate": program, "examples/upgrade": examples} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	printed, ran, compared := "", 0, 0
	var others []string
	for _, b := range pageBlocks(t, upgradingPage) {
		switch b.language {
		case "sh":
			cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", b.text)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), commandtest.AsProgram+"=1")
			var errOut strings.Builder
			cmd.Stderr = &errOut
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s%s\n%s", err, out, errOut.String(), b.text)
			}
			printed = string(out)
			ran++
		case "text", "yaml":
			if !strings.Contains(printed, b.text) {
				t.Errorf("the page says that a block prints\n%s\nand it prints\n%s", b.text, printed)
			}
			compared++
		default:
			others = append(others, b.language+": "+b.text)
		}
	}
	if ran < 6 || compared < 4 {
		t.Errorf("%d blocks were run, and %d compared: the page has more", ran, compared)
	}
	// They need a cluster; test/kubernetes runs preflight against one.
	want := []string{
		"console: $ hookgate preflight --for cluster-api=v1.14.0 --context management\n",
		"console: $ kubectl apply -f out/upgrade/policies.yaml\n",
		"console: $ kubectl get extensionconfigs.runtime.hookgate.dev acme -o jsonpath='{.status.conditions[?(@.type==\"ConversionLossy\")].message}'\n",
	}
	if diff := cmp.Diff(want, others); diff != "" {
		t.Errorf("blocks that are not run (-want +got):\n%s", diff)
	}
}

// TestUpgradingPageExplainsFindings: SARIF links to the page by rule.
func TestUpgradingPageExplainsFindings(t *testing.T) {
	text, err := os.ReadFile(upgradingPage)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, r := range preflight.Rules() {
		if r.Level != preflight.OK {
			want = append(want, fmt.Sprintf("%s %s", r.ID, r.Level))
		}
	}
	for section := range strings.SplitSeq(string(text), "\n### `") {
		id, rest, ok := strings.Cut(section, "`\n*")
		level, _, ok2 := strings.Cut(rest, ".*")
		if ok && ok2 {
			got = append(got, id+" "+level)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-rules +page):\n%s", diff)
	}
}
