// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// memoryLimit is the memory limit of the gateway in deploy/.
const memoryLimit = 512 << 20

// cageVariable names the kind of limit, "group" or "watch". Without it, a control group is used if there is one.
const cageVariable = "HOOKGATE_FAULTS_LIMIT"

// hierarchy is a hierarchy of control groups, and the file of a group that limits its memory.
type hierarchy struct{ root, limit string }

// hierarchies returns those in which a group may be created.
func hierarchies() []hierarchy {
	return []hierarchy{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // version 1
		{"/sys/fs/cgroup", "memory.max"},                   // version 2
	}
}

// cage is a limit of memory for one process: a control group of Linux if one can be created, which the kernel enforces.
// Otherwise a watch ends a process that exceeds it.
type cage struct {
	limit int64
	dir   string // of the control group; empty without one
}

// newCage returns the cage that cageVariable asks for.
func newCage(t *testing.T, limit int64) *cage {
	t.Helper()
	asked := os.Getenv(cageVariable)
	if asked == "watch" {
		return &cage{limit: limit}
	}
	for _, h := range hierarchies() {
		if c := h.newCage(t, limit); c != nil {
			return c
		}
	}
	if asked == "group" {
		t.Fatalf("%s=%s: no control group with a limit of memory can be created", cageVariable, asked)
	}
	return &cage{limit: limit}
}

// newCage returns a cage with a control group, which is removed when the test ends; nil if there can be none.
func (h hierarchy) newCage(t *testing.T, limit int64) *cage {
	t.Helper()
	dir := filepath.Join(h.root, fmt.Sprintf("hookgate-faults-%d-%d", os.Getpid(), time.Now().UnixNano()))
	if os.Mkdir(dir, 0o755) != nil {
		return nil
	}
	t.Cleanup(func() { // The kernel needs a moment to take a process out of its group.
		process.Eventually(t, "the control group is removed", func() bool { return os.Remove(dir) == nil })
	})
	// The file exists if this is a hierarchy of control groups that has the controller.
	file, err := os.OpenFile(filepath.Join(dir, h.limit), os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	_, err = file.WriteString(strconv.FormatInt(limit, 10))
	if file.Close() != nil || err != nil {
		return nil
	}
	return &cage{limit, dir}
}

func (c *cage) String() string {
	if c.dir == "" {
		return "a watch of its resident memory"
	}
	return "the control group " + c.dir
}

// command returns the command of a program in the cage.
func (c *cage) command(program string, args ...string) *exec.Cmd {
	if c.dir == "" {
		return exec.Command(program, args...)
	}
	const enter = `echo $$ > "$0" && exec "$@"`
	return exec.Command("/bin/sh", append([]string{"-c", enter, filepath.Join(c.dir, "cgroup.procs"), program}, args...)...)
}

// watch ends the process when it exceeds the limit, if the kernel does not.
func (c *cage) watch(p *process.Process, pid int) {
	if c.dir != "" {
		return
	}
	go func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-p.Exited():
				return
			case <-tick.C:
				if resident, err := process.Resident([]int{pid}); err == nil && resident > c.limit {
					p.Kill()
					return
				}
			}
		}
	}()
}
