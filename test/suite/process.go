// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	processes "github.com/hookgate/hookgate/test/process"
)

// The environment variables that name the programs.
const (
	gatewayVariable   = "HOOKGATE_BIN"
	extensionVariable = "HOOKGATE_TEST_EXTENSION"
)

// patience is how long a test waits for something that has no deadline of its own before it fails.
const patience = 20 * time.Second

// program returns the path of a program, and skips the test where it is not given.
func program(t testing.TB, variable string) string {
	t.Helper()
	return processes.Program(t, variable)
}

// process is a program that runs. What it prints is kept, and shown when the test fails.
type process struct {
	name   string
	cmd    *exec.Cmd
	output *transcript
	done   chan struct{}
	err    error // of Wait; set when done is closed
}

// launch starts a program. It ends with the test at the latest.
func launch(t testing.TB, name, path string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(path, args...), output: newTranscript(), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s", name, p.output.tail(8000))
		}
	})
	return p
}

// kill ends the process at once, as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// terminate asks the process to end, as Kubernetes does.
func (p *process) terminate(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("signal %s: %v", p.name, err)
	}
}

// exitCode waits until the process ends.
func (p *process) exitCode(t testing.TB) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("%s still runs after %s", p.name, patience)
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) {
		t.Fatalf("wait for %s: %v", p.name, p.err)
	}
	return p.cmd.ProcessState.ExitCode()
}

// await waits until the process has printed something that matches, and returns the groups of the first match.
func (p *process) await(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(patience)
	for {
		text, changed := p.output.read()
		if m := re.FindStringSubmatch(text); m != nil {
			return m
		}
		select {
		case <-changed:
		case <-p.done:
			if text, _ := p.output.read(); !re.MatchString(text) {
				t.Fatalf("%s ended and never printed %q; it printed:\n%s", p.name, pattern, p.output.tail(4000))
			}
		case <-deadline:
			t.Fatalf("%s did not print %q in %s; it printed:\n%s", p.name, pattern, patience, p.output.tail(4000))
		}
	}
}

// transcript is what a process has printed so far.
type transcript struct {
	mu      sync.Mutex
	buffer  bytes.Buffer
	changed chan struct{}
}

var _ io.Writer = (*transcript)(nil)

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffer.Write(p)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

// read returns the text, and a channel that is closed when there is more.
func (s *transcript) read() (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buffer.String(), s.changed
}

// tail returns the last n bytes, for messages.
func (s *transcript) tail(n int) string {
	text, _ := s.read()
	if len(text) > n {
		text = "…" + strings.ToValidUTF8(text[len(text)-n:], "")
	}
	return text
}

// eventually waits until check holds.
func eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !check() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %s", what, patience)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
