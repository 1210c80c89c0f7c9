// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts programs for measurements, and tells what they use of the machine. It needs Linux, for /proc.
// Functions are safe for concurrent use; a Process belongs to one goroutine.
package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clockTick is the unit of CPU times in /proc/<pid>/stat: USER_HZ, 100 per second on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// Process is a program that the harness started.
type Process struct {
	name string
	cmd  *exec.Cmd
	// input is held open: the harness's own peers end when it closes, so none outlives a harness that was killed.
	input   io.Closer
	logFile string
	exited  chan struct{}
}

// Start starts cmd with its output in a log file below dir. If prefix is not empty, it waits for a line on
// standard output that starts with it, and returns the rest of that line.
func Start(ctx context.Context, dir, name, prefix string, cmd *exec.Cmd) (*Process, string, error) {
	p := &Process{name: name, cmd: cmd, logFile: filepath.Join(dir, name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.logFile)
	if err != nil {
		return nil, "", err
	}
	output, outputEnd, err := os.Pipe()
	if err != nil {
		return nil, "", errors.Join(err, log.Close())
	}
	cmd.Stdout, cmd.Stderr = outputEnd, log
	if p.input, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	_ = outputEnd.Close()
	if err != nil {
		_, _ = output.Close(), log.Close()
		return nil, "", fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // The error of a process that was told to stop says nothing; of any other, its log does.
		close(p.exited)
	}()

	found := make(chan string, 1)
	go func() {
		defer func() { _, _ = output.Close(), log.Close() }()
		lines := bufio.NewReader(output)
		for {
			line, err := lines.ReadString('\n')
			if rest, ok := strings.CutPrefix(line, prefix); ok && prefix != "" && err == nil {
				select {
				case found <- strings.TrimSpace(rest):
				default:
				}
			}
			_, _ = log.WriteString(line)
			if err != nil {
				return
			}
		}
	}()
	if prefix == "" {
		return p, "", nil
	}

	select {
	case line := <-found:
		return p, line, nil
	case <-p.exited:
		err = fmt.Errorf("start %s: it ended early:%s", name, p.LogTail())
	case <-time.After(30 * time.Second):
		err = fmt.Errorf("start %s: no line %q after 30 s:%s", name, prefix, p.LogTail())
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.Stop()
	return nil, "", err
}

// Stop ends the process, with force if it does not obey within 5 s.
func (p *Process) Stop() {
	_ = p.input.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

// Terminate asks the process to end, as Kubernetes does.
func (p *Process) Terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends the process at once, as a crash would, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.exited
}

// ExitStatus waits until the process has ended, and returns its exit status: -1 if a signal ended it.
func (p *Process) ExitStatus(patience time.Duration) (int, error) {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(patience):
		return 0, fmt.Errorf("%s still runs after %s:%s", p.name, patience, p.LogTail())
	}
}

// LogTail returns the last lines that the process wrote, each on a line of its own and indented, to follow a colon.
func (p *Process) LogTail() string {
	const most = 10
	content, err := os.ReadFile(p.logFile)
	if err != nil {
		return " " + err.Error()
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return " it wrote nothing"
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return "\n    " + strings.Join(lines[max(0, len(lines)-most):], "\n    ")
}

// PIDs returns the process and its direct children, which is what nginx's workers are.
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

// CPUTime returns what the processes have used so far, in user and kernel mode together.
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

// Resident returns the resident memory of the processes (VmRSS). Pages that they share count once for each.
func Resident(pids []int) (int64, error) {
	var sum int64
	for _, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		rss, err := parseRSS(status)
		if err != nil {
			return 0, err
		}
		sum += rss
	}
	return sum, nil
}

// parseRSS reads VmRSS, in bytes, from /proc/<pid>/status.
func parseRSS(status []byte) (int64, error) {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("VmRSS:")); ok {
			kb, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read VmRSS: %w", err)
			}
			return kb << 10, nil
		}
	}
	return 0, errors.New("read VmRSS: /proc/<pid>/status has no such line (the process ended)")
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
