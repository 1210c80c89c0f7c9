// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hello compares extensions with one handler that are on the packages for authors with such that are on the
// stubs alone, with the same server: the time of the processor that each takes until it has answered its first call,
// Discovery, and its resident memory then. `make
// bench-packages` runs it from the root of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// hello is an extension, built on a package or on its stubs.
type hello struct {
	language, of string
	command      []string // and the address
}

// sample is what one start has taken.
type sample struct {
	cpu    time.Duration
	memory int // kB
}

func main() {
	runs := flag.Int("runs", 15, "how often each extension is started")
	only := flag.String("language", "", "the only language that is compared, such as Python")
	flag.Parse()
	if err := run(*runs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

func run(runs int, only string) error {
	dir, err := os.MkdirTemp("", "hookgate-hello-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	all, err := build(dir)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(x hello) bool { return only != "" && x.language != only })
	samples := map[string][]sample{}
	for round := range runs {
		// In turns, so that all have the same noise, and each comes first as often as the other one does: what ran before
		// leaves the caches of the processor in another state.
		for i := range all {
			x := all[i^(round&1)]
			s, err := start(x)
			if err != nil {
				return fmt.Errorf("%s on the %s: %w", x.language, x.of, err)
			}
			samples[x.language+x.of] = append(samples[x.language+x.of], s)
		}
	}
	fmt.Println("language    CPU until it answers: package, stubs, ratio    resident: package, stubs, ratio")
	for i := 0; i < len(all); i += 2 {
		language := all[i].language
		p, s := typical(samples[language+"package"]), typical(samples[language+"stubs"])
		fmt.Printf("%-11s %7.1f ms %7.1f ms %6.2f %20.1f MiB %6.1f MiB %6.2f\n", language, p.cpu.Seconds()*1e3, s.cpu.Seconds()*1e3,
			p.cpu.Seconds()/s.cpu.Seconds(), float64(p.memory)/1024, float64(s.memory)/1024, float64(p.memory)/float64(s.memory))
	}
	return nil
}

// typical returns the least time, to which others on the machine can only add, and the median of the memory.
func typical(samples []sample) sample {
	var cpu []time.Duration
	var memory []int
	for _, s := range samples {
		cpu, memory = append(cpu, s.cpu), append(memory, s.memory)
	}
	slices.Sort(cpu)
	slices.Sort(memory)
	return sample{cpu[0], memory[len(memory)/2]}
}

// build builds all extensions, the package before the stubs. The examples have been built, with their dependencies.
func build(dir string) ([]hello, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	from := func(path ...string) string { return filepath.Join(append([]string{root, "test", "hello"}, path...)...) }
	example := func(path ...string) string { return filepath.Join(append([]string{root, "examples"}, path...)...) }
	jar := example("java", "target", "hookgate-example.jar")
	if err := os.Symlink(example("typescript", "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		return nil, err
	}
	var all []hello
	for _, of := range []string{"package", "stubs"} {
		script := filepath.Join(dir, of+".mjs")
		text, err := os.ReadFile(from("typescript", of+".mjs"))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(script, text, 0o600); err != nil {
			return nil, err
		}
		for _, command := range [][]string{
			{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, of), "./test/hello/go/" + of},
			{"javac", "-cp", jar, "-d", filepath.Join(dir, "java-"+of), from("java", of, "Main.java")},
		} {
			if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
			}
		}
		all = append(all,
			hello{"Go", of, []string{filepath.Join(dir, of)}},
			hello{"Java", of, []string{
				"java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", jar + ":" + filepath.Join(dir, "java-"+of), "Main",
			}},
			hello{"Python", of, []string{example("python", "build", "venv", "bin", "python"), from("python", of+".py")}},
			hello{"Rust", of, []string{example("rust", "target", "release", of)}},
			hello{"TypeScript", of, []string{"node", script}},
		)
	}
	if err := buildRust(root, filepath.Join(dir, "rust")); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b hello) int { return strings.Compare(a.language, b.language) })
	return all, nil
}

// buildRust builds both programs in Rust, in a copy outside of the repository, with the dependencies of the example.
func buildRust(root, dir string) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "test", "hello", "rust"))); err != nil {
		return err
	}
	for path, change := range map[string]struct{ from, old, now string }{
		"Cargo.toml": {filepath.Join(dir, "Cargo.toml"), "../../../sdk/rust", filepath.Join(root, "sdk", "rust")},
		"Cargo.lock": {filepath.Join(root, "examples", "rust", "Cargo.lock"), `name = "hookgate-example"`, `name = "hello"`},
	} {
		text, err := os.ReadFile(change.from)
		if err != nil {
			return err
		}
		text = []byte(strings.Replace(string(text), change.old, change.now, 1))
		if err := os.WriteFile(filepath.Join(dir, path), text, 0o600); err != nil {
			return err
		}
	}
	cargo := exec.Command("cargo", "build", "--quiet", "--release")
	cargo.Dir = dir
	cargo.Env = append(os.Environ(), "CARGO_TARGET_DIR="+filepath.Join(root, "examples", "rust", "target"))
	if out, err := cargo.CombinedOutput(); err != nil {
		return fmt.Errorf("cargo build: %w\n%s", err, out)
	}
	return nil
}

// start starts an extension, and stops it when it has answered Discovery.
func start(x hello) (sample, error) {
	free, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return sample{}, err
	}
	address := free.Addr().String()
	_ = free.Close()
	cmd := exec.Command(x.command[0], append(x.command[1:], address)...)
	if err := cmd.Start(); err != nil {
		return sample{}, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 2 * time.Millisecond, MaxDelay: 2 * time.Millisecond}}))
	if err != nil {
		return sample{}, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := hooks.NewDiscoveryServiceClient(conn)
	answer, err := client.Discovery(ctx, &hooks.DiscoveryRequest{}, grpc.WaitForReady(true))
	for status.Code(err) == codes.Unavailable && ctx.Err() == nil { // it listens, and does not serve yet
		answer, err = client.Discovery(ctx, &hooks.DiscoveryRequest{}, grpc.WaitForReady(true))
	}
	if err != nil {
		return sample{}, err
	}
	if len(answer.GetHandlers()) != 1 {
		return sample{}, fmt.Errorf("it has the handlers %v", answer.GetHandlers())
	}
	time.Sleep(settle)
	return look(cmd.Process.Pid)
}

// settle is how long an extension has to end what it began before it answered.
const settle = 300 * time.Millisecond

// look reads what a process has taken so far. Its clock ticks a hundred times a second, and so the times of its threads
// in nanoseconds are added.
func look(pid int) (s sample, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return s, err
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			return s, err
		}
		s.cpu += time.Duration(ns)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(status)) {
		if fields := strings.Fields(line); fields[0] == "VmRSS:" {
			s.memory, err = strconv.Atoi(fields[1])
		}
	}
	return s, err
}
