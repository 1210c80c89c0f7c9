// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a running program. Its output goes to a file.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
	err  error // of Wait; set when done is closed
}

// launch starts a program, which ends with the test at the latest.
func (w *fixture) launch(name, path string, args ...string) *process {
	w.t.Helper()
	return w.launchAs(w.kubeconfig, name, path, args...)
}

// launchAs is launch with another kubeconfig than the administrator's.
func (w *fixture) launchAs(kubeconfig, name, path string, args ...string) *process {
	w.t.Helper()
	log, err := os.OpenFile(filepath.Join(w.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &process{name: name, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_IP=127.0.0.1"), w.env...)
	if lingers() { // Ctrl-C reaches the suite, which ends its programs in turn
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	}
	if err := p.cmd.Start(); err != nil {
		w.t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		_ = log.Close()
		close(p.done)
	}()
	w.running = append(w.running, p)
	w.t.Cleanup(func() { p.stop(w.t) })
	return p
}

// stop sends SIGTERM, as Kubernetes does, and kills the process if it does not end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		t.Logf("%s did not end on SIGTERM, and is killed", p.name)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// retire stops a process that is not needed any more, and wants it to end well.
func (w *fixture) retire(p *process) {
	w.t.Helper()
	for i, r := range w.running {
		if r == p {
			w.running = append(w.running[:i:i], w.running[i+1:]...)
		}
	}
	p.stop(w.t)
	if p.err != nil {
		w.t.Fatalf("%s ended with: %v", p.name, p.err)
	}
}

// dead describes a process that has ended by itself, or returns "".
func (w *fixture) dead() string {
	for _, p := range w.running {
		select {
		case <-p.done:
			return fmt.Sprintf("%s ended: %v", p.name, p.err)
		default:
		}
	}
	return ""
}

// eventually waits until check holds; check also returns what it saw. It gives up when a process ends.
func (w *fixture) eventually(what string, check func() (saw string, ok bool)) {
	w.t.Helper()
	w.eventuallyWithin(patience, what, check)
}

// eventuallyWithin is eventually with another bound than patience.
func (w *fixture) eventuallyWithin(patience time.Duration, what string, check func() (saw string, ok bool)) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		saw, ok := check()
		if ok {
			return
		}
		if who := w.dead(); who != "" {
			w.t.Fatalf("%s; and so not: %s; last seen: %s", who, what, saw)
		}
		if err := w.ctx.Err(); err != nil {
			w.t.Fatalf("the suite's time is over: %v; not yet: %s; last seen: %s", err, what, saw)
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not within %s: %s; last seen: %s", patience, what, saw)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// ready waits until a server says that it is ready.
func (w *fixture) ready(s *server) {
	w.t.Helper()
	w.eventually(s.name+" is ready", func() (string, bool) {
		r, err := http.Get("http://" + loopback(s.health) + "/readyz")
		if err != nil {
			return err.Error(), false
		}
		_ = r.Body.Close()
		return r.Status, r.StatusCode == http.StatusOK
	})
}

// Ports for servers that cannot say which one they took. They are below those that systems give to outgoing
// connections, which could take one before its server listens, and above those of the infrastructure provider's API
// servers.
const (
	firstPort = 22000
	lastPort  = 31999
)

var (
	portMu   sync.Mutex // of nextPort
	nextPort = firstPort + rand.IntN(lastPort-firstPort)
)

// freePort returns a free port that it has not returned before.
func freePort(t *testing.T) int {
	t.Helper()
	portMu.Lock()
	defer portMu.Unlock()
	for range lastPort - firstPort {
		if nextPort++; nextPort > lastPort {
			nextPort = firstPort
		}
		if l, err := net.Listen("tcp", fmt.Sprintf(":%d", nextPort)); err == nil {
			_ = l.Close()
			return nextPort
		}
	}
	t.Fatal("no free port")
	return 0
}
