// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/command/internal/author"
	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/conformance"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/test/process"
)

// restarted is an extension on a socket, whose handler answers with retryAfterSeconds.
type restarted struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	name  string
	retry int32
}

func (r *restarted) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	return &hooksv1alpha1.DiscoveryResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		Handlers: []*hooksv1alpha1.ExtensionHandler{{
			Name: r.name, RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: hook.APIVersion, Hook: "BeforeClusterCreate"},
		}},
	}, nil
}

func (r *restarted) BeforeClusterCreate(context.Context, *hooksv1alpha1.BeforeClusterCreateRequest) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	return &hooksv1alpha1.BeforeClusterCreateResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, RetryAfterSeconds: r.retry,
	}, nil
}

// start serves until stop is called.
func (r *restarted) start(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	hooksv1alpha1.RegisterDiscoveryServiceServer(server, r)
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, r)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	stop = func() { server.Stop(); <-done }
	t.Cleanup(stop)
	return stop
}

// TestCheckWatch restarts an extension until it keeps the rules, as its author does. Ctrl-C ends with the exit status of
// the last results.
func TestCheckWatch(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "x.sock")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "check", "unix://"+socket, "--watch", "--only", "answers.retry,answers.valid")
	cmd.Env = append(os.Environ(), commandtest.AsProgram+"=1")
	p := process.Run(t, "check", cmd)
	p.Expect(t, `the first run:\nextension unix://\S+: `) // it waits for an extension that is not there yet
	stop := (&restarted{name: "gate", retry: -1}).start(t, socket)
	p.Expect(t, `the extension has restarted:\nFAIL  answers\.retry `)
	p.Expect(t, `(?m)1 handler: 1 passed, 1 failed.*$`)
	stop()
	stop = (&restarted{name: "gate", retry: -2}).start(t, socket)
	p.Expect(t, `the extension has restarted:\n(?s:.*)Since the last run, fail in another way: answers\.retry\.\n`)
	stop()
	p.Expect(t, `\d, the extension no longer answers; waiting for it\n`)
	(&restarted{name: "gate", retry: 1}).start(t, socket)
	p.Expect(t, `Since the last run, now pass: answers\.retry\.\n`)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.ExitCode(t); code != cmdline.ExitDone {
		t.Errorf("exit status %d, want that of the last results\n%s", code, p.Output())
	}
}

// TestCheckWait starts an extension after its check has begun. The check does not wait for one that it cannot trust.
func TestCheckWait(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "x.sock")
	started := make(chan struct{})
	go func() {
		defer close(started)
		time.Sleep(3 * author.SeekEvery)
		(&restarted{name: "gate"}).start(t, socket)
	}()
	code, out, errOut := execute(t, "check", "unix://"+socket, "--wait", "1m", "--only", "answers.retry")
	if code != cmdline.ExitDone || !strings.Contains(out, " 1 passed, 0 failed") {
		t.Errorf("exit status %d: %s%s", code, out, errOut)
	}
	<-started
	url, _ := checked(t, goodAnswer)
	if code, _, errOut := execute(t, "check", url, "--wait", "10m"); code != cmdline.ExitFailed || !strings.Contains(errOut, "signed by an unknown authority") {
		t.Errorf("exit status %d: %s", code, errOut)
	}
}

// TestCheckWatchEndsWhileDown ends a watch whose last results are good, but whose extension has gone since.
func TestCheckWatchEndsWhileDown(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "x.sock")
	stop := (&restarted{name: "gate", retry: 1}).start(t, socket)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "check", "unix://"+socket, "--watch", "--only", "answers.retry")
	cmd.Env = append(os.Environ(), commandtest.AsProgram+"=1")
	p := process.Run(t, "check", cmd)
	p.Expect(t, `1 handler: 1 passed, 0 failed.*\n`)
	stop()
	p.Expect(t, `the extension no longer answers; waiting for it\n`)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	code := p.ExitCode(t)
	if told := strings.Count(p.Output(), "no longer answers; waiting"); code != cmdline.ExitFailed || told != 1 {
		t.Errorf("exit status %d, told %d times\n%s", code, told, p.Output())
	}
}

// A change of Discovery is seen without a restart, and a server that ends each connection is not taken for a new one.
func TestRestarts(t *testing.T) {
	var discovery, asked atomic.Int64
	url, ca := checkedBy(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			_, _ = fmt.Fprintf(w, `{"status":"Success","message":"%d"}`, discovery.Load())
			if asked.Add(1) == 4 {
				discovery.Add(1)
			}
		})
	})
	r, err := author.NewRestarts(t.Context(), url, ca, commandtest.AllHooks)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if why := r.Wait(t.Context()); why != "the answer to Discovery has changed" || asked.Load() != 5 {
		t.Errorf("noticed %q after %d calls, want 5", why, asked.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if why := r.Wait(ctx); why != "" {
		t.Errorf("noticed %q after Ctrl-C", why)
	}
}

func TestCheckWatchRefuses(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"https://127.0.0.1:1", "-o", "json"}, cmdline.ExitUsage, "--watch prints tables only: want --output table, got json"},
		{[]string{"ftp://127.0.0.1:1"}, cmdline.ExitUsage, `not with "ftp"`},
		{[]string{"grpc://acme.example:1"}, cmdline.ExitUsage, "must be on loopback"},
		{[]string{"https://127.0.0.1:1", "--only", "none"}, cmdline.ExitUsage, `--only: there is no check "none"`},
	} {
		got := commandtest.Hookgate(t, "", append([]string{"check", "--watch"}, tt.args...)...)
		if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) || got.Out != "" {
			t.Errorf("%v: exit status %d, want %q in\n%s%s", tt.args, got.Code, tt.want, got.ErrOut, got.Out)
		}
	}
}

// Ctrl-C keeps the results until then, and says which checks were not run.
func TestCheckInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	url, ca := checkedBy(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/create") { // the first check that calls the handler
				cancel()
				_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the client leaves
				<-r.Context().Done()
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	var out, errOut strings.Builder
	code := commandtest.Run(ctx, []string{"check", url, "--ca", ca, "--only", "discovery,answers", "-v"}, strings.NewReader(""), &out, &errOut,
		func(string) (string, bool) { return "", false })
	if code != cmdline.ExitFailed || !strings.Contains(errOut.String(), ": interrupted\n") || !strings.Contains(out.String(), "pass  discovery.") ||
		!strings.Contains(out.String(), "ERROR answers.retry: not run: interrupted\n") {
		t.Errorf("exit status %d\n%s%s", code, out.String(), errOut.String())
	}
}

func TestChanges(t *testing.T) {
	result := func(id string, s conformance.Status, problem string) conformance.Result {
		r := conformance.Result{ID: id, Status: s}
		if problem != "" {
			r.Findings = []conformance.Finding{{Problem: problem, Got: "at " + problem}}
		}
		return r
	}
	before := &conformance.Report{Results: []conformance.Result{
		result("a", conformance.Pass, ""), result("b", conformance.Fail, "x"), result("c", conformance.Skip, ""), result("d", conformance.Fail, "x"),
	}}
	now := &conformance.Report{Results: []conformance.Result{
		result("a", conformance.Fail, "x"), result("b", conformance.Fail, "y"), result("c", conformance.Error, ""), result("d", conformance.Fail, "x"),
	}}
	const want = "Since the last run, could not be carried out: c; fail in another way: b; now fail: a."
	if got := author.Changes(before, now); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := author.Changes(before, before); got != "Since the last run, no result has changed." {
		t.Errorf("the same again: %s", got)
	}
}
