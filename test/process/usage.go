// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// clockTick is the unit of CPU times in /proc/<pid>/stat: USER_HZ, 100 per second on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// PIDs returns the IDs of the process and its direct children, such as nginx's workers.
func (p *Process) PIDs() ([]int, error) {
	pids := []int{p.cmd.Process.Pid}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue // It ended meanwhile.
		}
		if parent, _, err := parseStat(stat); err == nil && parent == pids[0] {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// CPUTime returns the CPU time that the processes have used so far, in user and kernel mode together.
func CPUTime(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		_, cpu, err := parseStat(stat)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of process: %w", err)
		}
		sum += cpu
	}
	return sum, nil
}

// parseStat reads parent and CPU time from /proc/<pid>/stat. The name in its second field may hold spaces and
// parentheses, so the count starts behind the last one: there, field 1 is the parent, 11 and 12 are utime and stime.
func parseStat(stat []byte) (parent int, cpu time.Duration, err error) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, 0, fmt.Errorf("/proc/<pid>/stat has %d fields behind the name, want at least 13", len(fields))
	}
	if parent, err = strconv.Atoi(string(fields[1])); err != nil {
		return 0, 0, err
	}
	for _, f := range fields[11:13] {
		ticks, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		cpu += time.Duration(ticks) * clockTick
	}
	return parent, cpu, nil
}

// Resident returns the resident memory of the processes (VmRSS). Shared pages count once per process.
func Resident(pids []int) (int64, error) { return sumOf("VmRSS", pids) }

// Anonymous returns the resident memory of the processes besides pages of files (RssAnon): what the kernel cannot take
// back when memory is short.
func Anonymous(pids []int) (int64, error) { return sumOf("RssAnon", pids) }

func sumOf(name string, pids []int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		rss, err := parseMemory(status, name)
		if err != nil {
			return 0, err
		}
		sum += rss
	}
	return sum, nil
}

// parseMemory reads a line such as VmRSS, in bytes, from /proc/<pid>/status.
func parseMemory(status []byte, name string) (int64, error) {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))),
				10, 64)
			if err != nil {
				return 0, fmt.Errorf("read %s: %w", name, err)
			}
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("read %s: /proc/<pid>/status has no such line (the process ended)", name)
}

// WatchMemory samples the resident memory every 50 ms until the returned function is called, which returns the highest
// sample.
func WatchMemory(pids []int) (stop func() int64) {
	done, peak := make(chan struct{}), make(chan int64, 1)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		var most int64
		for {
			if rss, err := Resident(pids); err == nil {
				most = max(most, rss)
			}
			select {
			case <-tick.C:
			case <-done:
				peak <- most
				return
			}
		}
	}()
	return func() int64 {
		close(done)
		return <-peak
	}
}
