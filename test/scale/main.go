// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command scale measures a gateway that takes many ExtensionConfigs from a real API server, and the same gateway with
// few:
//
//	go run ./test/scale --hookgate bin/hookgate --assets bin/kubernetes            2,000 ExtensionConfigs of 10 handlers; about 3 minutes
//
// How to read the output. There is a row for each number of ExtensionConfigs:
//
//   - ready: from the start of the process to /readyz, where nothing was discovered before;
//   - discovered: from that start until every handler is served. Two cores share this with the API server, etcd, and the
//     extension that answers;
//   - written: until the status of every ExtensionConfig tells, which --kube-api-qps (100) bounds;
//   - restart: from the start of the process to all handlers served, with the status that the first one wrote;
//   - resident, peak: memory of that second process, at rest and at most (VmRSS);
//   - change: from the write of one ExtensionConfig to the first call that is made with it, the median and the slowest of
//     some, when the new process has looked at everything once. It goes through API server, watch, discovery of that one, and registry.
//
// The last line holds these against the bars that the project sets itself.
//
// With --clusters 5000,10000, it measures the state of so many Clusters instead. Each has moved in an ExtensionRollout, has
// a place of one HookRule, and is held by a second one. A third one holds its Machine before the drain:
//
//   - ready, resident, peak: as above, of a process that finds all of this when it starts;
//   - Machines: from the start of that process until it has called the hook of each held Machine again;
//   - hold: a call that a rule holds, on average, with eight callers;
//   - /status, /, get holds: time and size of what people look at;
//   - requests, watched, writes: what the API server does for the gateway in a minute at rest, less what it does without it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// The bars: from write to served, memory at rest, and how much slower a change may be among many than among few.
const (
	mostChange   = time.Second
	mostResident = 200 << 20
	mostGrowth   = 3.0 // the change among few takes milliseconds, which the machine's noise alone can double
)

// errUsage marks wrong usage: exit status 2.
var errUsage = errors.New("wrong usage")

func main() {
	ctrllog.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	hookgate, assets, crds string
	configs, clusters      []int
	handlers, policies     int
	changes                int
	check                  bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.hookgate, "hookgate", "", "`path` of the hookgate binary under test")
	flags.StringVar(&o.assets, "assets", "", "`directory` with kube-apiserver and etcd")
	flags.StringVar(&o.crds, "crds", filepath.Join("deploy", "crd"), "`directory` with the CustomResourceDefinitions")
	configs := flags.String("configs", "20,2000", "`numbers` of ExtensionConfigs, the fewest first")
	clusters := flags.String("clusters", "", "`numbers` of Clusters, the fewest first, such as 5000,10000: measure the state of "+
		"these instead of ExtensionConfigs")
	flags.IntVar(&o.handlers, "handlers", 10, "`number` of handlers of each")
	flags.IntVar(&o.policies, "policies", 10, "one ExtensionPolicy for each `number` of ExtensionConfigs; 0 for none")
	flags.IntVar(&o.changes, "changes", 15, "`number` of changes to measure")
	flags.BoolVar(&o.check, "check", false, "exit with status 1 when a bar is missed")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage // The flag package has said what is wrong.
	}
	if o.hookgate == "" || o.assets == "" || flags.NArg() > 0 {
		return o, fmt.Errorf("%w: --hookgate and --assets are required, and there are no arguments", errUsage)
	}
	var err error
	if o.configs, err = numbers("--configs", *configs); err != nil {
		return o, err
	}
	if *clusters != "" {
		if o.clusters, err = numbers("--clusters", *clusters); err != nil {
			return o, err
		}
		if n := len(o.clusters); n < 2 || o.clusters[n-1] != 2*o.clusters[0] {
			return o, fmt.Errorf("%w: the last of --clusters is twice the first", errUsage)
		}
	}
	if o.handlers < 1 || o.handlers > 512 || o.changes < 1 || o.policies < 0 || !slices.IsSorted(o.configs) {
		return o, fmt.Errorf("%w: --handlers is 1 to 512, --changes 1 or more, --policies not negative, and --configs ascends", errUsage)
	}
	return o, nil
}

// numbers returns the numbers in a list.
func numbers(name, list string) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%w: %s: %q is not a number", errUsage, name, text)
		}
		all = append(all, n)
	}
	return all, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "hookgate-scale-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if len(o.clusters) > 0 {
		return runClusters(ctx, o, dir, stdout, stderr)
	}
	var rows []row
	for _, n := range o.configs {
		if _, err := fmt.Fprintf(stderr, "%d ExtensionConfigs of %d handlers …\n", n, o.handlers); err != nil {
			return err
		}
		r, err := measure(ctx, o, filepath.Join(dir, strconv.Itoa(n)), n)
		if err != nil {
			return fmt.Errorf("%d ExtensionConfigs: %w", n, err)
		}
		rows = append(rows, r)
	}
	missed, err := report(stdout, o, rows)
	if err == nil && missed && o.check {
		err = errors.New("a bar was missed")
	}
	return err
}

// row is what was measured with one number of ExtensionConfigs.
type row struct {
	configs                             int
	ready, discovered, written, restart time.Duration
	resident, peak                      int64
	changes                             []time.Duration // in order
}

func (r *row) median() time.Duration  { return r.changes[len(r.changes)/2] }
func (r *row) slowest() time.Duration { return r.changes[len(r.changes)-1] }

// report prints the rows and the bars, and reports whether one was missed.
func report(w io.Writer, o options, rows []row) (missed bool, err error) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "ExtensionConfigs\thandlers\tready\tdiscovered\twritten\trestart\tresident\tpeak\tchange\tslowest\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%s\t%d MiB\t%d MiB\t%s\t%s\t\n", r.configs, r.configs*o.handlers,
			short(r.ready), short(r.discovered),
			short(r.written), short(r.restart), r.resident>>20, r.peak>>20, short(r.median()), short(r.slowest()))
	}
	if err := t.Flush(); err != nil {
		return false, err
	}
	few, many := &rows[0], &rows[len(rows)-1]
	growth := float64(many.median()) / float64(few.median())
	for _, bar := range []struct {
		what string
		ok   bool
	}{
		{fmt.Sprintf("slowest change %s, at most %s", short(many.slowest()), mostChange), many.slowest() <= mostChange},
		{fmt.Sprintf("resident %d MiB, at most %d MiB", many.resident>>20, mostResident>>20), many.resident <= mostResident},
		{fmt.Sprintf("a change among %d takes %.2f times one among %d, at most %.1f", many.configs, growth, few.configs, mostGrowth), growth <= mostGrowth},
	} {
		verdict := "PASS"
		if !bar.ok {
			verdict, missed = "BELOW", true
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", verdict, bar.what); err != nil {
			return missed, err
		}
	}
	return missed, nil
}

func short(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
