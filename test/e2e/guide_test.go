// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The section of the page that is run.
const (
	guide      = "../../docs/infrastructure.md"
	guideBegin = "\n## From nothing to a Cluster\n"
)

var (
	// fenced is a block, with its language and what follows on that line.
	fenced = regexp.MustCompile("(?ms)^```([a-z]*)(?: ([^\n]*))?\n(.*?)^```$")
	// started is a command that goes on in the background, and listens is an address that it has.
	started = regexp.MustCompile(`(?ms)^[^\n]*?(?:\\\n[^\n]*?)*&$`)
	listens = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
)

// TestGuide follows the guide to a provider and a Cluster, in one shell and in the folder in which it begins, with the
// real Cluster API. A block with file= in its first line is that file. Only the ports are changed, because other programs
// may use them.
func TestGuide(t *testing.T) {
	w := beginWith(t, false, false) // the guide applies the CRDs itself
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(repository, filepath.Join(dir, "hookgate")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", guideScript(t))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "CLOUD_HOST=127.0.0.1", "CLUSTERCTL_DISABLE_VERSIONCHECK=true",
		"PATH="+strings.Join([]string{
			filepath.Dir(folder(t, "HOOKGATE_CLUSTERCTL")), folder(t, "KUBEBUILDER_ASSETS"), os.Getenv("PATH"),
		}, string(os.PathListSeparator)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // and what it left running
	cmd.WaitDelay = 10 * time.Second
	output, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, output, logsOf(filepath.Join(dir, "my-provider")))
	}
	t.Logf("the guide printed:\n%s", output)
	for _, want := range []string{
		`"providerIdPrefix": "fake://"`,
		" passed, 0 failed, 0 warnings",
		"infrastructureclass.infrastructure.hookgate.dev/lab condition met",
		"cluster.cluster.x-k8s.io/my-cluster condition met",
		`"tags":{"size":"large"}`,
		"machinepool.cluster.x-k8s.io/my-cluster-mp-0 condition met",
		`"networks":{"exist":0,"created":1,"deleted":1,`,
		`"machines":{"exist":0,"created":5,"deleted":5,`,
	} {
		if !strings.Contains(string(output), want) {
			t.Errorf("the guide did not print %s", want)
		}
	}
}

// guideScript returns the blocks of the guide as one script.
func guideScript(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), guideBegin)
	if !ok {
		t.Fatalf("%s has no section %q", guide, strings.TrimSpace(guideBegin))
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var b strings.Builder
	b.WriteString("set -euo pipefail\n")
	for _, block := range fenced.FindAllStringSubmatch(section, -1) {
		language, rest, text := block[1], block[2], block[3]
		file, isFile := strings.CutPrefix(rest, "file=")
		switch {
		case isFile:
			fmt.Fprintf(&b, "cat > '%s' <<'END OF FILE'\n%sEND OF FILE\n", file, text)
		case language == "sh":
			b.WriteString(text)
			for _, command := range started.FindAllString(text, -1) {
				for _, address := range listens.FindAllString(command, -1) {
					// A person would type the next command more slowly than a server starts.
					fmt.Fprintf(&b, "address=%s; for i in $(seq 600); do (: < /dev/tcp/${address/://}) 2> /dev/null && break; [ $i -lt 600 ]; sleep 0.1; done\n", address)
				}
			}
		case language != "console": // it needs the network; a test has the repository and the programs already
			t.Errorf("a block of the guide is not run: %s", block[0])
		}
	}
	ports := map[string]string{}
	return listens.ReplaceAllStringFunc(b.String(), func(address string) string {
		if ports[address] == "" {
			ports[address] = loopback(freePort(t))
		}
		return ports[address]
	})
}

// logsOf returns what programs have written to files of a folder.
func logsOf(dir string) string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	for _, path := range files {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(&b, "-- %s\n%s", filepath.Base(path), text)
	}
	return b.String()
}
