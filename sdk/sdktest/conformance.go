// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/hookgate/hookgate/sdk"
)

// Conformance serves the extension on loopback and runs the conformance checks on it, with one subtest for each. A
// broken rule of the level Must fails its subtest; one of the level Should is logged.
//
// It runs `hookgate check`: the program that HOOKGATE_BIN names, or hookgate in PATH. Without one, the test fails. The
// flags are those of the command: give requests on which the handlers act, as in
// "--request=GeneratePatches=testdata/patches.yaml". With "--strict", all broken rules fail the test.
func Conformance(t *testing.T, x *sdk.Extension, flags ...string) {
	t.Helper()
	program, err := findProgram()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"check", serve(t, x), "--output=json"}, flags...)
	cmd := exec.CommandContext(t.Context(), program, args...) //nolint:gosec // the author of the test names the program
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	ended := cmd.Run()
	var report struct{ Results []result }
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil || len(report.Results) == 0 {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), ended, stdout.Bytes(), stderr.Bytes())
	}
	for i := range report.Results {
		t.Run(report.Results[i].ID, report.Results[i].test)
	}
	if ended != nil && !t.Failed() { // with --strict, or because the checks were interrupted
		t.Errorf("%s: %v\n%s", strings.Join(cmd.Args, " "), ended, stderr.Bytes())
	}
}

// findProgram returns the path of the program hookgate.
func findProgram() (string, error) {
	if program := os.Getenv("HOOKGATE_BIN"); program != "" {
		return program, nil
	}
	program, err := exec.LookPath("hookgate")
	if err != nil {
		return "", errors.New("hookgate, which checks extensions, is not in PATH: put it there, or set HOOKGATE_BIN to " +
			"its path. `go install github.com/hookgate/hookgate/cmd/hookgate@latest` installs it")
	}
	return program, nil
}

// serve serves the extension on loopback until the test ends, and returns its URL.
func serve(t *testing.T, x *sdk.Extension) string {
	t.Helper()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(sdk.MessageBytes), grpc.MaxSendMsgSize(sdk.MessageBytes))
	if err := x.Register(server); err != nil {
		t.Fatal(err)
	}
	healthv1.RegisterHealthServer(server, health.NewServer())
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(fmt.Errorf("serve the extension: %w", err))
		}
	})
	return "grpc://" + listener.Addr().String()
}

// result is the result of one check, as the program prints it.
type result struct {
	ID, Level, Status, Rule, Source, Reason string

	Findings []struct{ Handler, Sent, Got, Problem string }
}

func (r *result) test(t *testing.T) {
	t.Helper()
	switch {
	case r.Status == "pass":
	case r.Status == "skip":
		t.Skip(r.Reason)
	case r.Level == "SHOULD":
		t.Log("SHOULD: " + r.detail())
	default:
		t.Error(r.detail())
	}
}

// detail returns all that is known about a result that did not pass. What an extension wrote may not be for a terminal.
func (r *result) detail() string {
	var b strings.Builder
	if r.Reason != "" {
		fmt.Fprintln(&b, r.Reason)
	}
	for _, f := range r.Findings {
		if f.Handler != "" {
			fmt.Fprintf(&b, "handler: %s\n", f.Handler)
		}
		fmt.Fprintf(&b, "problem: %s\nsent: %s\ngot: %s\n", f.Problem, f.Sent, f.Got)
	}
	fmt.Fprintf(&b, "rule: %s\nsource: %s", r.Rule, r.Source)
	return strings.Map(func(c rune) rune {
		if c != '\n' && !unicode.IsPrint(c) {
			return unicode.ReplacementChar
		}
		return c
	}, b.String())
}
