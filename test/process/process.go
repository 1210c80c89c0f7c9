// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts programs for tests and measurements, keeps their output, and reads their resource usage from
// Linux's /proc. Everything in it is safe for concurrent use.
package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience bounds every wait for a state. It is long because a wait ends as soon as the state is reached: it delays
// only the report of a failure, and a busy machine must not cause one.
const Patience = time.Minute

// ServerPatience bounds the start and the end of an API server, and the time that it takes to serve new kinds. envtest's
// own limits, of 10 and 20 s, are too short for a busy machine.
const ServerPatience = 3 * time.Minute

// Process is a running program.
type Process struct {
	name string
	cmd  *exec.Cmd
	// input stays open: a measurement's own peers end when it closes, so that none outlives a killed measurement.
	input  io.Closer
	output transcript
	exited chan struct{}
}

// Start starts cmd and keeps its output. The name appears in errors.
func Start(name string, cmd *exec.Cmd) (*Process, error) {
	p := &Process{name: name, cmd: cmd, exited: make(chan struct{})}
	p.output.changed = make(chan struct{})
	cmd.Stdout, cmd.Stderr = &p.output, &p.output
	cmd.WaitDelay = 5 * time.Second // for children that keep the output open
	var err error
	if p.input, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // ExitStatus and the output say how it ended.
		close(p.exited)
	}()
	return p, nil
}

// Await waits until the output matches the pattern, and returns the groups of the first match. It gives up when the
// process ends, after Patience, or with ctx.
func (p *Process) Await(ctx context.Context, pattern string) ([]string, error) {
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("waited %s", Patience))
	defer cancel()
	for ended := false; ; {
		text, changed := p.output.read()
		if groups := re.FindStringSubmatch(text); groups != nil {
			return groups, nil
		}
		if ended {
			return nil, fmt.Errorf("%s ended without printing %q:%s", p.name, pattern, p.LogTail())
		}
		select {
		case <-changed:
		case <-p.exited:
			ended = true
		case <-ctx.Done():
			return nil, fmt.Errorf("%s has not printed %q: %w:%s", p.name, pattern, context.Cause(ctx), p.LogTail())
		}
	}
}

// Stop ends the process, by force if it does not end within 30 s.
func (p *Process) Stop() {
	_ = p.input.Close()
	_ = p.Terminate()
	select {
	case <-p.exited:
	case <-time.After(30 * time.Second):
		p.Kill()
	}
}

// Terminate sends SIGTERM, as Kubernetes does.
func (p *Process) Terminate() error { return p.cmd.Process.Signal(syscall.SIGTERM) }

// Reload sends SIGHUP.
func (p *Process) Reload() error { return p.cmd.Process.Signal(syscall.SIGHUP) }

// Kill ends the process at once, as a crash would, and waits until it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // It may have ended already.
	<-p.exited
}

// Exited returns a channel that is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// ExitStatus waits until the process ends and returns its exit status: -1 if a signal ended it.
func (p *Process) ExitStatus() (int, error) {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(Patience):
		return 0, fmt.Errorf("%s still runs after %s:%s", p.name, Patience, p.LogTail())
	}
}

// Output returns everything that the process has printed so far.
func (p *Process) Output() string {
	text, _ := p.output.read()
	return text
}

// LogTail returns the last lines of the output, indented, to follow a colon.
func (p *Process) LogTail() string {
	const most = 20
	text := strings.TrimSpace(p.Output())
	if text == "" {
		return " it printed nothing"
	}
	lines := strings.Split(text, "\n")
	return "\n    " + strings.Join(lines[max(0, len(lines)-most):], "\n    ")
}

// transcript keeps what a process prints.
type transcript struct {
	mu      sync.Mutex
	buffer  bytes.Buffer
	changed chan struct{} // closed at the next write
}

func (t *transcript) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buffer.Write(p)
	close(t.changed)
	t.changed = make(chan struct{})
	return len(p), nil
}

// read returns the text so far, and a channel that is closed when there is more.
func (t *transcript) read() (string, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buffer.String(), t.changed
}
