// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// cpuPeriod is in which time a container may use its share of a processor, as Kubernetes has it.
const cpuPeriod = 100 * time.Millisecond

// allowance is what a replica may use.
type allowance struct {
	milliCPU, mebibytes int // 0 for no limit
}

// group is a control group with an allowance: a directory of version 2, or one for each controller of version 1.
type group struct {
	cpu, memory string
	version2    bool
}

// groups counts the groups of this process.
var groups atomic.Int64

// newGroup makes a group, which is to be removed.
func newGroup(a allowance) (*group, error) {
	const root = "/sys/fs/cgroup"
	name := fmt.Sprintf("hookgate-fleet-%d-%d", os.Getpid(), groups.Add(1))
	quota := strconv.FormatInt(int64(a.milliCPU)*cpuPeriod.Microseconds()/1000, 10)
	period := strconv.FormatInt(cpuPeriod.Microseconds(), 10)
	most := strconv.FormatInt(int64(a.mebibytes)<<20, 10)
	g := &group{cpu: filepath.Join(root, "cpu", name), memory: filepath.Join(root, "memory", name)}
	settings := [][2]string{
		{filepath.Join(g.cpu, "cpu.cfs_period_us"), period}, {filepath.Join(g.cpu, "cpu.cfs_quota_us"), quota},
		{filepath.Join(g.memory, "memory.limit_in_bytes"), most},
	}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err == nil {
		dir := filepath.Join(root, name)
		g = &group{cpu: dir, memory: dir, version2: true}
		settings = [][2]string{
			{filepath.Join(dir, "cpu.max"), quota + " " + period}, {filepath.Join(dir, "memory.max"), most},
		}
	}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("make a control group, which takes root, or --cpu 0 --memory 0: %w", err), g.remove())
		}
	}
	for _, s := range settings {
		if err := os.WriteFile(s[0], []byte(s[1]), 0o644); err != nil {
			return nil, errors.Join(fmt.Errorf("limit a control group: %w", err), g.remove())
		}
	}
	return g, nil
}

func (g *group) dirs() []string {
	if g.version2 {
		return []string{g.cpu}
	}
	return []string{g.cpu, g.memory}
}

// command returns the command of a program that enters the group. A nil group is none.
func (g *group) command(program string, args ...string) *exec.Cmd {
	if g == nil {
		return exec.Command(program, args...)
	}
	const enter = `for group in $0; do echo $$ > "$group/cgroup.procs" || exit 1; done; exec "$@"`
	return exec.Command("/bin/sh", append([]string{"-c", enter, strings.Join(g.dirs(), " "), program}, args...)...)
}

// remove removes the group once its process has ended, for which the kernel needs a moment.
func (g *group) remove() error {
	if g == nil {
		return nil
	}
	var errs []error
	for _, dir := range g.dirs() {
		for end := time.Now().Add(5 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			err := os.Remove(dir)
			if err == nil || errors.Is(err, os.ErrNotExist) {
				break
			}
			if time.Now().After(end) {
				errs = append(errs, err)
				break
			}
		}
	}
	return errors.Join(errs...)
}

// throttled returns in how many periods the group ran, and in how many of them it had to wait.
func (g *group) throttled() (periods, waited int64) {
	if g == nil {
		return 0, 0
	}
	text, _ := os.ReadFile(filepath.Join(g.cpu, "cpu.stat")) // of a group that is gone
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "nr_periods":
			periods = n
		case "nr_throttled":
			waited = n
		}
	}
	return periods, waited
}
