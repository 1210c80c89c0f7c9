// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// runGreedy takes as many MiB as the argument says, and waits until its input closes. Only its limit ends it before.
func runGreedy(args []string) error {
	signal.Ignore(syscall.SIGTERM)
	mib, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	debug.SetGCPercent(-1)
	taken := make([][]byte, mib)
	for i := range taken {
		taken[i] = make([]byte, 1<<20)
		for j := 0; j < len(taken[i]); j += 4 << 10 {
			taken[i][j] = 1 // so that it is resident
		}
	}
	fmt.Printf("holding %d MiB\n", len(taken))
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// playIn starts this program in a role and in a cage.
func playIn(t *testing.T, c *cage, as string, args ...string) *process.Process {
	t.Helper()
	cmd := c.command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), role+"="+as)
	p := process.Run(t, as, cmd)
	pids, err := p.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	c.watch(p, pids[0])
	return p
}

// TestCageEndsWhatExceedsIt takes less memory than a cage allows, and more.
func TestCageEndsWhatExceedsIt(t *testing.T) {
	const limit = 128 << 20
	cages := map[string]func(t *testing.T) *cage{
		"watch": func(*testing.T) *cage { return &cage{limit: limit} },
	}
	for i, h := range hierarchies() {
		cages[fmt.Sprintf("group version %d", i+1)] = func(t *testing.T) *cage { return h.newCage(t, limit) }
	}
	for name, build := range cages {
		t.Run(name, func(t *testing.T) {
			c := build(t)
			if c == nil {
				t.Skip("this machine has no such hierarchy of control groups with a controller of memory, " +
					"or not the right to create a group")
			}
			inside := playIn(t, c, "greedy", "64")
			inside.Expect(t, "holding 64 MiB\n")
			inside.Stop()
			if code := inside.ExitCode(t); code != 0 {
				t.Errorf("within %s: exit status %d, want 0", c, code)
			}
			beyond := playIn(t, c, "greedy", "512")
			if code := beyond.ExitCode(t); code != -1 {
				t.Errorf("beyond %s: exit status %d, want -1: a signal ends it", c, code)
			}
			if c.dir != "" && strings.Contains(beyond.Output(), "holding") { // a watch may be late
				t.Errorf("%s allowed 512 MiB, want at most %d", c, limit>>20)
			}
		})
	}
}

// TestCageOfVersion2 enters a control group of version 2. Where memory belongs to version 1, groups of version 2 have no
// memory.max: then no cage is made of it, and another file of a group stands for the limit.
func TestCageOfVersion2(t *testing.T) {
	root := version2(t)
	probe := filepath.Join(root, fmt.Sprintf("hookgate-faults-probe-%d", os.Getpid()))
	if err := os.Mkdir(probe, 0o755); err != nil {
		t.Skipf("no right to create a group: %v", err)
	}
	_, err := os.Stat(filepath.Join(probe, "memory.max"))
	if err := os.Remove(probe); err != nil {
		t.Fatal(err)
	}
	if c := (hierarchy{root, "memory.max"}).newCage(t, 128<<20); (c != nil) != (err == nil) {
		t.Errorf("a cage: %t; the group has memory.max: %t", c != nil, err == nil)
	}
	c := hierarchy{root, "cgroup.max.descendants"}.newCage(t, 3)
	if c == nil {
		t.Fatal("no cage")
	}
	if got, err := os.ReadFile(filepath.Join(c.dir, "cgroup.max.descendants")); err != nil || string(got) != "3\n" {
		t.Errorf("the limit is %q, %v; want 3", got, err)
	}
	inside := process.Run(t, "shell", c.command("/bin/sh", "-c", "cat /proc/self/cgroup; read wait"))
	inside.Expect(t, `(?m)^0::.*`+filepath.Base(c.dir)+`\n`)
}

// TestCageNeedsAController asks for a group in a directory that is none, which takes files of any name.
func TestCageNeedsAController(t *testing.T) {
	dir := t.TempDir()
	if c := (hierarchy{dir, "memory.max"}).newCage(t, memoryLimit); c != nil {
		t.Errorf("got %s", c)
	}
	if c := (hierarchy{filepath.Join(dir, "absent"), "memory.max"}).newCage(t, memoryLimit); c != nil {
		t.Errorf("got %s", c)
	}
}

// TestCageIsChosen forces the watch.
func TestCageIsChosen(t *testing.T) {
	t.Setenv(cageVariable, "watch")
	c := newCage(t, memoryLimit)
	if c.dir != "" {
		t.Errorf("got %s", c)
	}
	if got, want := c.command("program", "argument").Args, exec.Command("program", "argument").Args; len(got) != len(want) {
		t.Errorf("runs %q, want %q", got, want)
	}
}

// version2 returns where control groups of version 2 are mounted.
func version2(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Skipf("no /proc/mounts: %v", err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			return fields[1]
		}
	}
	t.Skip("control groups of version 2 are not mounted")
	return ""
}
