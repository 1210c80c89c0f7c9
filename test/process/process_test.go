// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os/exec"
	"strings"
	"testing"
)

func shell(t *testing.T, script string) *Process {
	t.Helper()
	return Run(t, "shell", exec.CommandContext(t.Context(), "sh", "-c", script))
}

func TestAwaitReturnsTheGroupsOfALine(t *testing.T) {
	p := shell(t, "echo first; read wait; echo never")
	if got := p.Expect(t, `(?m)^(f)irst\n`)[1]; got != "f" {
		t.Errorf("got group %q", got)
	}
}

func TestAwaitSeesTheLastOutputOfAProcessThatEnds(t *testing.T) {
	p := shell(t, "echo last >&2; exit 3")
	if code := p.ExitCode(t); code != 3 {
		t.Errorf("exit status %d, want 3", code)
	}
	p.Expect(t, `last\n`)
	if _, err := p.Await(t.Context(), "more"); err == nil ||
		!strings.Contains(err.Error(), `ended without printing "more"`) {
		t.Errorf("Await of what a process did not print: %v", err)
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	p := shell(t, "read wait")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Await(ctx, "x"); err == nil || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("Await with a canceled context: %v", err)
	}
}

func TestEndsOfProcesses(t *testing.T) {
	p := shell(t, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done")
	p.Expect(t, "ready")
	p.EndWell(t)

	killed := shell(t, "read wait")
	killed.Kill()
	if code := killed.ExitCode(t); code != -1 {
		t.Errorf("exit status %d of a killed process, want -1", code)
	}
	stopped := shell(t, "read wait") // ends when its input closes
	stopped.Stop()
	stopped.Stop()
}

func TestGatewayNamesItsAddresses(t *testing.T) {
	g := RunGateway(t, exec.CommandContext(t.Context(), "sh", "-c",
		"echo note; echo hookgate serving https=a:1 diagnostics=b:2; read wait"))
	if g.HTTPS != "a:1" || g.Diagnostics != "b:2" || g.GRPC != "" || g.Health != "" {
		t.Errorf("got %+v", g)
	}
}
