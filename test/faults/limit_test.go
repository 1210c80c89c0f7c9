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

// cage is a limit of memory for one process: a control group of Linux if one can be created, which the kernel enforces.
// Otherwise a watch ends a process that exceeds it.
type cage struct {
	dir string // of the control group; empty without one
}

// newCage returns a cage. The control group is removed when the test ends.
func newCage(t *testing.T) *cage {
	t.Helper()
	name := fmt.Sprintf("hookgate-faults-%d-%d", os.Getpid(), time.Now().UnixNano())
	for _, group := range []struct{ root, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, // version 1
		{"/sys/fs/cgroup", "memory.max"},                   // version 2
	} {
		dir := filepath.Join(group.root, name)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, group.limit), []byte(strconv.Itoa(memoryLimit)), 0o600) == nil {
			return &cage{dir}
		}
	}
	return &cage{}
}

func (c *cage) String() string {
	if c.dir == "" {
		return "a watch of its resident memory"
	}
	return "a control group"
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
				if resident, err := process.Resident([]int{pid}); err == nil && resident > memoryLimit {
					p.Kill()
					return
				}
			}
		}
	}()
}
