// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures what the gateway costs: it starts the gateway, a null extension and two other proxies on this
// machine, puts the same load on each in turn, and prints rates, latencies, CPU time, memory and their ratios.
//
//	go run ./test/bench --hookgate bin/hookgate            everything, about 7 minutes
//	go run ./test/bench --hookgate bin/hookgate --quick    shorter rounds, about 1.5 minutes
//	go run ./test/bench --hookgate bin/hookgate --sizes S --callers 16 --protocols h1 --rounds 9
//	go run ./test/bench --hookgate bin/hookgate --sizes S --callers 1000 --protocols h1 --in-flight 1024 --handlers 50
//	go run ./test/bench --hookgate bin/hookgate --baseline OLD --peers gateway    a change beside what was before it
//
// How to read the output. There is a table per cell, which is a size of body (S, M, L), a number of callers, each of
// which makes one call after the other, and the protocol that they speak; HTTP/2 callers share one connection, as
// Cluster API's do. The rows are the peers:
//
//   - direct: the null extension, called without anything between. It reads the request and answers at once, so this is
//     the ceiling, and the differences to it are what a proxy adds.
//   - ReverseProxy: httputil.ReverseProxy with TLS on both sides: the least that a proxy in Go does. It only copies
//     bytes, where the gateway reads, checks and dispatches every call.
//   - nginx: the same in C, with two workers; skipped where it is not installed.
//   - baseline: another build of the gateway, if --baseline names one. Each cell then has a bar: at most 3 % slower.
//   - gateway: hookgate serve with one ExtensionConfig.
//
// All share the machine with the load generator, so the rates say how much CPU a whole call takes, and only ratios of
// one run mean something. Ratios are medians over rounds in which the peers take turns. Where min-max is wide the
// machine was busy: then trust CPU/call, which counts the peer's own processes only. Below the cells are the fan-out,
// and the bars that the project sets itself, PASS or BELOW. BELOW does not fail the run unless --check is given; an
// answer other than 200 with status Success does.
//
// The load generator is part of this process. It needs Linux, for /proc.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync/atomic"
	"syscall"
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
	slowHandlers := flags.Int("slow-handlers", 0, "")
	upstream := flags.String("upstream", "", "forward to this URL; empty: be the null extension")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var h http.Handler
	var accepted atomic.Int64
	if *upstream == "" {
		h = nullExtension(*slowHandlers, &accepted)
	} else {
		var err error
		if h, err = reverseProxy(*upstream, *ca); err != nil {
			return err
		}
	}
	return servePeer(h, &accepted, *cert, *key)
}

// run starts the peers, measures all cells and reports.
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

	f := &fleet{dir: dir, certs: certs, stderr: stderr}
	defer f.stop()
	if err := f.start(ctx, o); err != nil {
		return err
	}
	measured := slices.DeleteFunc(slices.Clone(f.peers), func(p *peer) bool {
		return p.name != peerBaseline && !slices.Contains(o.peers, p.name)
	})

	res := &result{Rounds: o.pace.rounds, DurationSeconds: o.pace.duration.Seconds()}
	if _, err := fmt.Fprintf(stdout, legend, o.pace.rounds, o.pace.duration); err != nil {
		return err
	}
	for _, c := range o.cells {
		peers, err := measureCell(ctx, c, measured, f.peer(peerDirect), o.pace, certs.caPEM)
		if err != nil {
			return err
		}
		cr := cellResult{
			Size: c.size, BodyBytes: len(c.body), Callers: c.callers, Protocol: c.protocol, Peers: peers,
		}
		res.Cells = append(res.Cells, cr)
		if err := cr.writeCell(stdout); err != nil {
			return err
		}
	}
	if gateway := f.peer(peerGateway); gateway != nil {
		res.FanOut, err = measureFanOut(ctx, gateway, f.peer(peerDirect), o.handlers, o.fanOuts, certs.caPEM)
		if err != nil {
			return err
		}
		if err := res.FanOut.writeFanOut(stdout); err != nil {
			return err
		}
	}

	if gateway := f.peer(peerGateway); gateway != nil &&
		slices.ContainsFunc(o.cells, func(c cell) bool { return c.size == "S" }) {
		if res.Conversion, err = measureConversion(ctx, gateway, f.peer(peerDirect), o.pace, certs.caPEM); err != nil {
			return err
		}
		if err := res.Conversion.write(stdout); err != nil {
			return err
		}
	}
	res.Bars = res.bars()
	missed, err := res.writeBars(stdout)
	if err != nil {
		return err
	}
	if o.jsonFile != "" {
		if err := res.writeJSON(o.jsonFile); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	if missed && o.check {
		return errors.New("a bar is missed")
	}
	return nil
}
