// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command fleet measures gateways under the calls that the real core of Cluster API makes for many Clusters:
//
//	go run ./test/fleet --hookgate bin/hookgate                                   an hour, as root
//	go run ./test/fleet --hookgate bin/hookgate --clusters 100 --replicas 2 --duration 10s --most 200
//
// The calls are those that TestTraffic of test/e2e has recorded of ten Clusters in testdata/traffic.json.gz: they were
// created, reconciled again and again, one of them was upgraded, and core was restarted. Each Cluster of a fleet does
// what one of these did, under its own name. Everything is on this machine: this program is the callers and the Service;
// the extension, which takes --takes for each call, and the replicas, each in a control group with the limits of --cpu
// and --memory, are processes. Callers are as core is: one HTTP client with its transport, and so one connection over
// HTTP/2. The Service chooses a replica for each connection.
//
// How to read the output, which is Markdown:
//
//   - steady state: reconciliations begin at the recorded rate, for core's period of ten minutes, whatever the answers
//     take (an open loop). Direct and through the gateway take turns. Waited is the part of the periods of 100 ms in
//     which a replica had used up its share of a processor;
//   - highest rate: the calls per second up to which p99 stays within --within times that of direct calls;
//   - closed loops: core's number of workers makes the calls of a phase (--phases) as fast as they are answered. With the
//     cache, the restart comes after another one, which has filled it;
//   - rolling restart: each replica is replaced under the steady load, another one before it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/process"
)

// errUsage marks wrong usage: exit status 2.
var errUsage = errors.New("wrong usage")

func main() {
	err := func() error {
		if len(os.Args) > 1 && os.Args[1] == extensionCommand {
			return runExtension(os.Args[2:])
		}
		o, err := parse(os.Args[1:], os.Stderr)
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
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	hookgate, recording, json    string
	clusters, replicas           []int
	replica                      allowance
	takes, duration              time.Duration
	shutdownDelay, connectionAge time.Duration
	workers                      int
	most, within                 float64
	parts, phases                []string
}

// The parts of a measurement.
const (
	partSteady  = "steady"
	partHighest = "highest"
	partClosed  = "closed"
	partRolling = "rolling"
)

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.hookgate, "hookgate", "", "`path` of the hookgate binary under test")
	flags.StringVar(&o.recording, "recording", filepath.Join("test", "fleet", "testdata", "traffic.json.gz"), "`file` that TestTraffic has recorded")
	clusters := flags.String("clusters", "1000,5000,10000", "`numbers` of Clusters")
	replicas := flags.String("replicas", "1,2,3", "`numbers` of replicas")
	flags.IntVar(&o.replica.milliCPU, "cpu", 500, "thousandths of a processor that a replica may use; with --memory 0, 0 for no limits")
	flags.IntVar(&o.replica.mebibytes, "memory", 512, "`MiB` that a replica may use")
	flags.DurationVar(&o.takes, "takes", 20*time.Millisecond, "`time` that the extension takes for a call")
	flags.DurationVar(&o.duration, "duration", time.Minute, "`time` of a measurement of the steady state")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 10*time.Second, "`time` that a replica still accepts calls when it ends")
	flags.DurationVar(&o.connectionAge, "connection-age", 20*time.Second, "`age` at which callers connect anew, shorter than by default, for "+
		"several connections in a measurement")
	flags.IntVar(&o.workers, "workers", 50, "`number` of workers in closed loops, as core's --clustertopology-concurrency")
	flags.Float64Var(&o.most, "most", 5000, "calls per second up to which the highest rate is looked for")
	flags.Float64Var(&o.within, "within", 1.5, "how many times the p99 of direct calls the highest rate may have")
	flags.StringVar(&o.json, "json", "", "`file` for the measurements, from which tools/performance draws the curves")
	parts := flags.String("parts", "steady,highest,closed,rolling", "`parts` to measure")
	phases := flags.String("phases", "create,upgrade,restart", "`phases` to make as closed loops")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage // The flag package has said what is wrong.
	}
	var err error
	if o.clusters, err = numbers("--clusters", *clusters, 100_000); err != nil {
		return o, err
	}
	if o.replicas, err = numbers("--replicas", *replicas, 10); err != nil {
		return o, err
	}
	o.parts, o.phases = strings.Split(*parts, ","), strings.Split(*phases, ",")
	for _, p := range o.parts {
		if !slices.Contains([]string{partSteady, partHighest, partClosed, partRolling}, p) {
			return o, fmt.Errorf("%w: --parts: %q is no part", errUsage, p)
		}
	}
	for _, p := range o.phases {
		if !slices.Contains(closedPhases, p) {
			return o, fmt.Errorf("%w: --phases: %q is no phase", errUsage, p)
		}
	}
	switch {
	case o.hookgate == "" || flags.NArg() > 0:
		return o, fmt.Errorf("%w: --hookgate is required, and there are no arguments", errUsage)
	case (o.replica.milliCPU == 0) != (o.replica.mebibytes == 0) || o.replica.milliCPU < 0 || o.replica.mebibytes < 0:
		return o, fmt.Errorf("%w: --cpu and --memory are both positive, or both 0", errUsage)
	case o.workers < 1 || o.duration <= 0 || o.takes < 0 || o.most <= 0 || o.within <= 1:
		return o, fmt.Errorf("%w: --workers, --duration, --takes and --most are positive, and --within is above 1", errUsage)
	}
	return o, nil
}

// numbers splits a comma-separated flag of numbers from 1 to most.
func numbers(name, list string, most int) ([]int, error) {
	var ns []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return nil, fmt.Errorf("%w: %s: %q is not a number from 1 to %d", errUsage, name, text, most)
		}
		ns = append(ns, n)
	}
	return ns, nil
}

// world is what all measurements share.
type world struct {
	options
	of         *traffic
	dir, certs string
	ca         []byte
	tls        *tls.Config
	extension  string // its address
	result     report.Result
	out, log   io.Writer
}

func run(ctx context.Context, o options, out, log io.Writer) (err error) {
	w := &world{options: o, out: out, log: log}
	if w.of, err = readTraffic(o.recording); err != nil {
		return err
	}
	if w.hookgate, err = filepath.Abs(o.hookgate); err != nil {
		return err
	}
	if w.dir, err = os.MkdirTemp("", "hookgate-fleet-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(w.dir)) }()
	if err := w.issue(); err != nil {
		return err
	}
	extension, err := w.startExtension(ctx)
	if err != nil {
		return err
	}
	defer extension.Stop()
	if err := w.describe(ctx); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{{partSteady, w.steady}, {partHighest, w.highest}, {partClosed, w.closedLoops}, {partRolling, w.rolling}} {
		if slices.Contains(o.parts, part.name) {
			if err := part.do(ctx); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	if o.json != "" {
		return w.result.Write(o.json)
	}
	return nil
}

// issue makes the certificate that all servers have.
func (w *world) issue() error {
	pair, err := devcert.New(time.Now().Add(24 * time.Hour))
	if err != nil {
		return err
	}
	w.certs, w.ca = filepath.Join(w.dir, "certs"), pair.CAPEM
	if err := os.Mkdir(w.certs, 0o700); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"tls.crt": pair.CertPEM, "tls.key": pair.KeyPEM} {
		if err := os.WriteFile(filepath.Join(w.certs, name), content, 0o600); err != nil {
			return err
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pair.CAPEM)
	w.tls = &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	return nil
}

func (w *world) startExtension(ctx context.Context) (*process.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		extensionCommand, "-cert", filepath.Join(w.certs, "tls.crt"), "-key", filepath.Join(w.certs, "tls.key"),
		"-takes", w.takes.String(),
	}, w.of.hooks...)
	p, err := process.Start("extension", exec.Command(self, args...))
	if err != nil {
		return nil, err
	}
	found, err := p.Await(ctx, `(?m)^`+listening+`(\S+)\n`)
	if err != nil {
		p.Stop()
		return nil, err
	}
	w.extension = found[1]
	return p, nil
}
