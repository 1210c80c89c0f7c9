// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
)

// maxCallers leaves the gateway room for a connection that has not quite gone.
const maxCallers = limits.Connections

// options holds the flags.
type options struct {
	hookgate string
	baseline string
	pace     pace
	fanOuts  int
	handlers int
	inFlight int
	peers    []string
	cells    []cell
	check    bool
	jsonFile string
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.hookgate, "hookgate", "", "`path` of the hookgate binary under test")
	flags.StringVar(&o.baseline, "baseline", "", "`path` of another hookgate binary to compare with, round by round")
	quick := flags.Bool("quick", false, "3 rounds of 0.5 s, unless --rounds or --duration say otherwise")
	rounds := flags.Int("rounds", 0, "`number` of rounds per cell (default 5)")
	duration := flags.Duration("duration", 0, "`time` of one round (default 1.5s)")
	sizes := flags.String("sizes", "S,M,L", "`sizes` of bodies to measure")
	callers := flags.String("callers", "1,16", "`numbers` of callers to measure")
	protocols := flags.String("protocols", "h1,h2", "`protocols` to measure")
	flags.IntVar(&o.handlers, "handlers", 10, "`number` of slow handlers that the fan-out calls, from 1 to 500")
	flags.IntVar(&o.inFlight, "in-flight", 0, "`number` of calls in flight that a policy allows the extension, "+
		"instead of the gateway's default")
	peers := flags.String("peers", "direct,ReverseProxy,nginx,gateway", "`peers` to measure")
	flags.BoolVar(&o.check, "check", false, "exit with status 1 when a bar is missed")
	flags.StringVar(&o.jsonFile, "json", "", "also write all rounds to this `file`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage // The flag package has said what is wrong.
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}

	o.pace, o.fanOuts = pace{rounds: 5, duration: 1500 * time.Millisecond, warmUp: 200 * time.Millisecond}, 20
	if *quick {
		o.pace, o.fanOuts = pace{rounds: 3, duration: 500 * time.Millisecond, warmUp: 50 * time.Millisecond}, 5
	}
	if *rounds != 0 {
		o.pace.rounds = *rounds
	}
	if *duration != 0 {
		o.pace.duration = *duration
	}
	if o.handlers < 1 || o.handlers > maxSlowHandlers {
		return o, fmt.Errorf("%w: --handlers must be from 1 to %d", errUsage, maxSlowHandlers)
	}
	if o.pace.rounds < 0 || o.pace.duration < 0 {
		return o, fmt.Errorf("%w: --rounds and --duration must be positive", errUsage)
	}

	var err error
	if o.baseline != "" && o.hookgate == "" {
		return o, fmt.Errorf("%w: --baseline needs --hookgate", errUsage)
	}
	if o.peers, err = choose("--peers", *peers, peerDirect, peerReverseProxy, peerNginx, peerGateway); err != nil {
		return o, err
	}
	if o.hookgate == "" && slices.Contains(o.peers, peerGateway) {
		return o, fmt.Errorf("%w: --hookgate is required, or --peers without gateway", errUsage)
	}
	if o.cells, err = chooseCells(*sizes, *callers, *protocols); err != nil {
		return o, err
	}
	return o, nil
}

// choose splits a comma-separated flag and returns its values in the order of the known ones.
func choose(name, list string, known ...string) ([]string, error) {
	given := strings.Split(list, ",")
	for _, g := range given {
		if !slices.Contains(known, g) {
			return nil, fmt.Errorf("%w: %s: %q is none of %s", errUsage, name, g, strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(known), func(k string) bool { return !slices.Contains(given, k) }), nil
}

// chooseCells returns the cells of three comma-separated flags.
func chooseCells(sizes, callers, protocols string) ([]cell, error) {
	chosenSizes, err := choose("--sizes", sizes, "S", "M", "L")
	if err != nil {
		return nil, err
	}
	chosenProtocols, err := choose("--protocols", protocols, string(http1Protocol), string(http2Protocol))
	if err != nil {
		return nil, err
	}
	var cells []cell
	for _, pl := range payloads() {
		if !slices.Contains(chosenSizes, pl.size) {
			continue
		}
		// Few callers first: memory of many callers is returned slowly, and would count for the next cells.
		for text := range strings.SplitSeq(callers, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > maxCallers {
				return nil, fmt.Errorf("%w: --callers: %q is not a number from 1 to %d", errUsage, text, maxCallers)
			}
			for _, p := range chosenProtocols {
				if p == string(http2Protocol) && n > limits.Streams {
					return nil, fmt.Errorf("%w: --callers: over HTTP/2, at most %d share a connection", errUsage, limits.Streams)
				}
				cells = append(cells, cell{payload: pl, callers: n, protocol: protocol(p)})
			}
		}
	}
	return cells, nil
}
