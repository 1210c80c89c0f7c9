// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the gateway costs: it starts the gateway, a null extension and two other proxies on this
// machine, puts the same load on each in turn, and prints rates, latencies, CPU time, memory and their ratios.
//
//	go run ./test/bench --hookgate bin/hookgate            everything, 15 to 30 minutes
//	go run ./test/bench --hookgate bin/hookgate --quick    fewer and shorter rounds, about 3 minutes
//	go run ./test/bench --hookgate bin/hookgate --parts cells --sizes S,64KB --callers 16 --protocols h1 --rounds 9
//	go run ./test/bench --hookgate bin/hookgate --parts cells --sizes S --callers 1000 --protocols h1 --in-flight 1000
//	go run ./test/bench --hookgate bin/hookgate --parts cells --baseline OLD --peers gateway    beside another build
//	go run ./test/bench --hookgate bin/hookgate --ratio --baseline OLD    fail if it has become slower, as CI does
//
// How to read the output. There is a table per cell, which is a size of body (S, M, L, or bytes), a number of callers,
// each of which makes one call after the other, and the protocol that they speak; HTTP/2 callers share one connection,
// as Cluster API's do. The rows are the peers:
//
//   - direct: the null extension, called without anything between. It reads the request and answers at once, so this is
//     the ceiling, and the differences to it are what a proxy adds.
//   - ReverseProxy: httputil.ReverseProxy with TLS on both sides: the least that a proxy in Go does. It only copies
//     bytes, where the gateway reads, checks and dispatches every call.
//   - nginx, Envoy: the same in C and in C++, with two workers; skipped where they are not installed.
//   - baseline: another build of the gateway, if --baseline names one. Each cell then has a bar: at most 3 % slower.
//   - gateway: hookgate serve with one ExtensionConfig.
//
// Cells "to gRPC" are in front of an extension that speaks gRPC, and Envoy is its transcoder from JSON to a Struct there.
//
// All share the machine with the load generator, so the rates say how much CPU a whole call takes, and only ratios of
// one run mean something. Ratios are medians over rounds in which the peers take turns. A cell has more rounds until as
// many in a row as --rounds agree; where they do not, its table says so, and the machine was busy: then trust the CPU
// time, which counts the peer's own processes only. Below the cells are the fan-out, the conversion of objects, a chain
// of handlers, HookRules, recording, and the bars that the project sets itself, PASS or BELOW. BELOW does not fail the
// run unless --check is given; an answer other than 200 with status Success does.
//
// The load generator is part of this process. It needs Linux, for /proc.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/hookgate/hookgate/test/bench/report"
)

const (
	// peerCommand is the hidden first argument with which this program starts itself as a peer, and listeningPrefix
	// what the peer prints before its address.
	peerCommand     = "peer"
	listeningPrefix = "listening on "
)

// errUsage marks wrong usage: exit status 2.
var errUsage = errors.New("wrong usage")

func main() {
	err := func() error {
		if len(os.Args) > 1 && os.Args[1] == peerCommand {
			return runPeer(os.Args[2:])
		}
		o, err := parseOptions(os.Args[1:], os.Stderr)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return run(ctx, o, os.Stdout, os.Stderr)
	}()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// runPeer is what the processes of the null extension and the ReverseProxy run.
func runPeer(args []string) error {
	flags := flag.NewFlagSet(peerCommand, flag.ContinueOnError)
	cert := flags.String("cert", "", "")
	key := flags.String("key", "", "")
	ca := flags.String("ca", "", "")
	grpc := flags.Bool("grpc", false, "be the null extension over gRPC")
	upstream := flags.String("upstream", "", "forward to this URL; empty: be the null extension")
	work := flags.Int("work", 0, "hash that many MiB before each call, to be noticed by tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *grpc {
		return serveNullGRPC(*cert, *key)
	}
	var accepted atomic.Int64
	h := nullExtension(&accepted)
	if *upstream != "" {
		var err error
		if h, err = reverseProxy(*upstream, *ca); err != nil {
			return err
		}
		h = profiled(h)
	}
	if *work > 0 {
		h = working(h, *work)
	}
	return servePeer(h, &accepted, *cert, *key)
}

// working hashes that many MiB before each call of h. Unlike a time, work takes as much CPU on a busy machine.
func working(h http.Handler, mebibytes int) http.Handler {
	block := make([]byte, 1<<20)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		for range mebibytes {
			_, _ = sum.Write(block) // never fails
		}
		h.ServeHTTP(w, r)
	})
}

const legend = `%v
Medians of %d rounds of %v, in which the peers take turns; %d rounds at most, until as many agree within %.0f %%.
  CPU per call     user and system time of the peer's own processes: less noisy than rates
  peak memory      resident memory above what it was before any load
  its rate, CPU    the gateway's figure / the peer's, round by round: more is better for rates, less for CPU time

`

// run starts the peers, measures all parts and reports.
func run(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errors.New("interrupted")
		}
	}()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return fmt.Errorf("CPU time and memory are read from Linux's /proc: %w", err)
	}
	dir, err := os.MkdirTemp("", "hookgate-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	certs, err := newCertificates(dir)
	if err != nil {
		return err
	}

	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return fmt.Errorf("--profiles: %w", err)
		}
	}
	f := &fleet{dir: dir, certs: certs, profiles: o.profiles, stderr: stderr}
	defer f.stop()
	if err := f.start(ctx, o); err != nil {
		return err
	}
	if o.ratio {
		return compare(ctx, o.cells, f.against(o.pace), stdout)
	}
	res := &report.Result{Machine: thisMachine(), Rounds: o.pace.rounds, DurationSeconds: o.pace.duration.Seconds()}
	if _, err := fmt.Fprintf(stdout, legend, res.Machine, o.pace.rounds, o.pace.duration, max(o.pace.rounds, o.pace.most), agreement*100); err != nil {
		return err
	}
	for _, measure := range []func(context.Context, options, *report.Result, io.Writer) error{
		f.measureCells, f.measureREST2GRPC, f.measureFanOuts, f.measureConversions, f.measureChains, f.measureRules,
		f.measureRecording, f.measureHandlers,
	} {
		if err := measure(ctx, o, res, stdout); err != nil {
			return err
		}
	}
	res.Bars = barsOf(res)
	if _, err := fmt.Fprintln(stdout, report.Bars(res)+elsewhere); err != nil {
		return err
	}
	if o.jsonFile != "" {
		if err := res.Write(o.jsonFile); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	if missed(res.Bars) && o.check {
		return errors.New("a bar is missed")
	}
	return nil
}
