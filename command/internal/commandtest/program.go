// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commandtest

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/grpclogs"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// program is the whole program.
var program func(
	ctx context.Context, program string, args []string, in io.Reader, out, errOut io.Writer,
	lookupEnv func(string) (string, bool), groups ...gateway.Group,
) int

// Main runs the tests of a package that have the program: run in the process, and main as a process of its own.
func Main(m *testing.M, run func(
	ctx context.Context, program string, args []string, in io.Reader, out, errOut io.Writer,
	lookupEnv func(string) (string, bool), groups ...gateway.Group,
) int, main func(groups ...gateway.Group),
) {
	if os.Getenv(AsProgram) != "" {
		main()
	}
	program = run
	grpclogs.Install(slog.New(slog.DiscardHandler)) // before the first test uses grpc-go
	os.Exit(m.Run())
}

// Run runs the program.
func Run(
	ctx context.Context, args []string, in io.Reader, out, errOut io.Writer, lookupEnv func(string) (string, bool),
) int {
	return program(ctx, "hookgate", args, in, out, errOut, lookupEnv)
}

var update = flag.Bool("update", false, "write the golden files")

// Outcome is the result of a run of the program.
type Outcome struct {
	Code   int
	Out    string
	ErrOut string
}

// ProgramPatience bounds a run of the program. Nothing takes nearly as long, even on a busy machine.
const ProgramPatience = 2 * time.Minute

// Hookgate runs a command of the program, with in as its standard input.
func Hookgate(t *testing.T, in string, args ...string) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ProgramPatience)
	defer cancel()
	var out, errOut bytes.Buffer
	code := Run(ctx, args, strings.NewReader(in), &out, &errOut, func(string) (string, bool) { return "", false })
	return Outcome{code, out.String(), errOut.String()}
}

// Golden compares with a file below testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites the file):\n%s", file, diff)
	}
}

// WriteFile writes a file into a folder of its own, and returns its path.
func WriteFile(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Completions returns what a shell is offered after the arguments.
func Completions(t *testing.T, args ...string) []string {
	t.Helper()
	got := Hookgate(t, "", append([]string{"__complete"}, args...)...)
	if got.Code != cmdline.ExitDone {
		t.Fatalf("%v: %+v", args, got)
	}
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	if last := lines[len(lines)-1]; last != ":4" { // without files
		t.Fatalf("%v: directive %s; %+v", args, last, got)
	}
	if said := strings.TrimSpace(got.ErrOut); said != "Completion ended with directive: ShellCompDirectiveNoFileComp" {
		t.Errorf("%v: wrote %s", args, said)
	}
	return lines[:len(lines)-1]
}

// AsProgram makes this test binary the program itself, for pages that run it.
const AsProgram = "HOOKGATE_TEST_AS_PROGRAM"

// Serving holds the flags of a gateway that could start.
func Serving(t *testing.T) (configs, certs string) {
	t.Helper()
	configs, certs = t.TempDir(), t.TempDir()
	certificates.In(t, certs)
	return configs, certs
}

// ServeBriefly runs hookgate serve with a context that ends when it listens, or at once if it does not.
func ServeBriefly(t *testing.T, env map[string]string, args ...string) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), ProgramPatience)
	defer cancel()
	out := &listening{cancel: cancel}
	var errOut bytes.Buffer
	code := Run(ctx, append([]string{"serve"}, args...), strings.NewReader(""), out, &errOut, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	return Outcome{code, out.String(), errOut.String()}
}

// listening calls cancel once something is written to it.
type listening struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (l *listening) Write(b []byte) (int, error) {
	defer l.cancel()
	return l.Buffer.Write(b)
}

// ServeProgram starts hookgate serve as a process, with more flags.
func ServeProgram(t *testing.T, configs, certs string, more ...string) *process.Gateway {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0],
		append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs}, append(process.AnyPorts(), more...)...)...)
	cmd.Env = append(os.Environ(), AsProgram+"=1")
	return process.RunGateway(t, cmd)
}
