// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Program returns the path in an environment variable that the Makefile sets. Without it the test is skipped, or fails
// if HOOKGATE_COMPLETE is set: `make test-all` skips nothing.
func Program(t testing.TB, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		report := t.Skipf
		if os.Getenv("HOOKGATE_COMPLETE") != "" {
			report = t.Fatalf
		}
		report("%s is not set: run %s, which builds what the tests need and sets it", variable, targets(variable))
	}
	return path
}

// targets returns the targets of the Makefile that set variable.
func targets(variable string) string {
	switch variable {
	case "HOOKGATE_BIN", "HOOKGATE_TEST_EXTENSION":
		return "`make test` or `make test-all`"
	case "HOOKGATE_SKEW_BIN":
		return "`make test-skew`"
	default:
		return "`make test-all`"
	}
}

// Run starts cmd and kills it when the test ends. If the test has failed, it logs the end of the output.
func Run(t testing.TB, name string, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Start(name, cmd)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, p)
	return p
}

// RunGateway starts cmd, a `hookgate serve`, waits until it listens, and kills it when the test ends.
func RunGateway(t testing.TB, cmd *exec.Cmd) *Gateway {
	t.Helper()
	g, err := StartGateway(t.Context(), "gateway", cmd)
	if err != nil {
		t.Fatal(err)
	}
	endWith(t, g.Process)
	return g
}

func endWith(t testing.TB, p *Process) {
	t.Helper()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed:%s", p.name, p.LogTail())
		}
	})
}

// Expect is Await for a test; it fails the test if it gives up.
func (p *Process) Expect(t testing.TB, pattern string) []string {
	t.Helper()
	groups, err := p.Await(t.Context(), pattern)
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

// ExitCode is ExitStatus for a test; it fails the test if the process does not end.
func (p *Process) ExitCode(t testing.TB) int {
	t.Helper()
	code, err := p.ExitStatus()
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// EndWell asks the process to end, and fails the test unless its exit status is 0.
func (p *Process) EndWell(t testing.TB) {
	t.Helper()
	if err := p.Terminate(); err != nil {
		t.Fatalf("signal %s: %v", p.name, err)
	}
	if code := p.ExitCode(t); code != 0 {
		t.Errorf("%s: exit status %d after SIGTERM, want 0", p.name, code)
	}
}

// WaitReady is AwaitReady for a test; it fails the test if it gives up.
func (g *Gateway) WaitReady(t testing.TB) {
	t.Helper()
	if err := g.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Eventually waits until check returns true, and fails the test after Patience.
func Eventually(t testing.TB, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !check(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not so after %s", what, Patience)
		}
	}
}

// EventuallySees waits until check holds. If it does not for that long, the test fails with what check saw last.
func EventuallySees(t testing.TB, patience time.Duration, what string, check func() (saw string, ok bool)) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		saw, ok := check()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s; last seen: %s", patience, what, saw)
		}
	}
}

// Log is output that can be read while it is written.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns what was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
