// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
	"strings"
	"syscall"
	"time"
)

const (
	startTimeout = time.Minute
	stopTimeout  = 45 * time.Second // more than a gateway waits for calls in flight
)

// process is a program that serves until it is stopped. Its log goes to a file.
type process struct {
	name    string
	command *exec.Cmd
	log     string        // file
	line    chan string   // the first line on its standard output, once
	exited  chan struct{} // closed when it has ended
	err     error         // why, to be read after exited
}

// start runs the program at path, without waiting until it serves.
func start(name, path, logFile string, args ...string) (*process, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s: build it first, as \"make run\" does", path)
	}
	// A path without a directory would be looked up in PATH.
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	log, err := os.Create(logFile)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the program has its own
	p := &process{
		name: name, command: exec.Command(absolute, args...), log: logFile,
		line: make(chan string, 1), exited: make(chan struct{}),
	}
	p.command.Stderr = log
	ownGroup(p.command)
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		lines := bufio.NewReader(stdout)
		if line, err := lines.ReadString('\n'); err == nil {
			p.line <- strings.TrimSpace(line)
		}
		_, _ = io.Copy(io.Discard, lines)
		p.err = p.command.Wait()
		close(p.exited)
	}()
	return p, nil
}

// addresses waits for the line with the program's addresses, and returns them: "https=127.0.0.1:9443" is
// "https" to "127.0.0.1:9443".
func (p *process) addresses(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case line := <-p.line:
		addresses := map[string]string{}
		for field := range strings.FieldsSeq(line) {
			if name, address, ok := strings.Cut(field, "="); ok {
				addresses[name] = address
			}
		}
		return addresses, nil
	case <-p.exited:
		return nil, fmt.Errorf("%s does not serve", p.name) // stop says why
	case <-ctx.Done():
		return nil, fmt.Errorf("%s did not begin to serve: %w\n%s", p.name, ctx.Err(), p.lastWords())
	}
}

// ended returns the error for a program that ended by itself.
func (p *process) ended() error {
	what := "without an error"
	if p.err != nil {
		what = p.err.Error()
	}
	return fmt.Errorf("%s ended by itself (%s). The end of its log, %s:\n%s", p.name, what, p.log, p.lastWords())
}

// lastWords returns the end of the log.
func (p *process) lastWords() string {
	const most = 10
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return "  " + string(bytes.Join(lines[max(0, len(lines)-most):], []byte("\n  ")))
}

// stop asks the program to end and waits until it has finished what is in flight. A program that ended before is an
// error.
func (p *process) stop() error {
	select {
	case <-p.exited:
		return p.ended()
	default:
	}
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", p.name, err)
	}
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		_ = p.command.Process.Kill()
		<-p.exited
		return fmt.Errorf("stop %s: it was still running after %s", p.name, stopTimeout)
	}
	if p.err != nil {
		return fmt.Errorf("stop %s: %w\n%s", p.name, p.err, p.lastWords())
	}
	return nil
}
