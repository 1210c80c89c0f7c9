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

	"github.com/hookgate/hookgate/internal/base/limits"
)

// maxCallers leaves the gateway room for a connection that has not quite gone.
const maxCallers = limits.Connections

// maxFanOut is how many handlers a call may have in measurements: beyond what people register.
const maxFanOut = 1000

// The parts of a run, besides the bars.
const (
	partCells      = "cells"
	partGRPC       = "grpc"
	partFanOut     = "fan-out"
	partConversion = "conversion"
	partChain      = "chain"
	partRules      = "rules"
	partHandlers   = "handlers"
	partRecording  = "recording"
)

// options holds the flags.
type options struct {
	hookgate, baseline string
	nginx, envoy       string
	pace               pace
	fanOuts            int
	handlers           []int
	inFlight           int
	peers, parts       []string
	cells              []cell
	check, ratio       bool
	jsonFile, profiles string
}

// part reports whether the part of the run is asked for.
func (o options) part(name string) bool { return slices.Contains(o.parts, name) }

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.hookgate, "hookgate", "", "`path` of the hookgate binary under test")
	flags.StringVar(&o.baseline, "baseline", "", "`path` of another hookgate binary to compare with, round by round")
	flags.StringVar(&o.nginx, "nginx", "", "`path` of nginx (default: that of PATH, or of "+proxiesDir+")")
	flags.StringVar(&o.envoy, "envoy", "", "`path` of Envoy (default: that of "+proxiesDir+", or of PATH)")
	quick := flags.Bool("quick", false, "3 rounds of 0.5 s, unless --rounds or --duration say otherwise")
	rounds := flags.Int("rounds", 0, "`number` of rounds per cell (default 5)")
	most := flags.Int("max-rounds", 0, "`number` of rounds after which a cell is left although they do not agree (default "+
		"twice --rounds; with --quick, as many)")
	duration := flags.Duration("duration", 0, "`time` of one round (default 1.5s)")
	sizes := flags.String("sizes", "S,M,L", "`sizes` of bodies to measure: S, M, L, or bytes such as 64KB and 20MiB")
	callers := flags.String("callers", "", "`numbers` of callers to measure (default 1,16 and, for S over HTTP/1.1, 1000)")
	protocols := flags.String("protocols", "h1,h2", "`protocols` to measure")
	handlers := flags.String("handlers", "10,50", "`numbers` of slow handlers that the fan-out calls, each from 1 to 1000")
	flags.IntVar(&o.inFlight, "in-flight", 0, "`number` of calls in flight that a policy allows the extension, "+
		"instead of the gateway's default")
	peers := flags.String("peers", "direct,ReverseProxy,nginx,Envoy,gateway", "`peers` to measure")
	parts := flags.String("parts", "cells,grpc,fan-out,conversion,chain,rules,recording", "`parts` to run; handlers is another, for\n"+
		"what the --handlers of a registration cost")
	flags.BoolVar(&o.check, "check", false, "exit with status 1 when a bar is missed")
	flags.BoolVar(&o.ratio, "ratio", false, "only compare with --baseline, and fail if the gateway is worse by more than 15 % "+
		"in every round")
	flags.StringVar(&o.jsonFile, "json", "", "also write all rounds to this `file`")
	flags.StringVar(&o.profiles, "profiles", "", "also keep a CPU profile of the gateway and of ReverseProxy for each cell, in this `directory`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, errUsage // The flag package has said what is wrong.
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%w: unexpected argument %q", errUsage, flags.Arg(0))
	}
	if *rounds < 0 || *most < 0 || *duration < 0 {
		return o, fmt.Errorf("%w: --rounds, --max-rounds and --duration must be positive", errUsage)
	}
	o.setPace(*quick, *rounds, *most, *duration)
	if o.baseline != "" && o.hookgate == "" {
		return o, fmt.Errorf("%w: --baseline needs --hookgate", errUsage)
	}

	var err error
	if o.handlers, err = numbers("--handlers", *handlers, maxFanOut); err != nil {
		return o, err
	}
	if o.parts, err = choose("--parts", *parts, partCells, partGRPC, partFanOut, partConversion, partChain, partRules,
		partRecording, partHandlers); err != nil {
		return o, err
	}
	if o.peers, err = choose("--peers", *peers, peerDirect, peerReverseProxy, peerNginx, peerEnvoy, peerGateway); err != nil {
		return o, err
	}
	if o.hookgate == "" && slices.Contains(o.peers, peerGateway) {
		return o, fmt.Errorf("%w: --hookgate is required, or --peers without gateway", errUsage)
	}
	if o.ratio {
		if o.baseline == "" {
			return o, fmt.Errorf("%w: --ratio needs --baseline", errUsage)
		}
		o.peers, o.parts, o.pace = []string{peerGateway}, nil, ratioPace
		*callers = strconv.Itoa(severalCallers)
	}
	o.cells, err = chooseCells(*sizes, *callers, *protocols)
	return o, err
}

// setPace sets the times; 0 is for what is not given.
func (o *options) setPace(quick bool, rounds, most int, duration time.Duration) {
	o.pace, o.fanOuts = pace{rounds: 5, duration: 1500 * time.Millisecond, warmUp: 200 * time.Millisecond}, 20
	repeat := 2
	if quick {
		o.pace, o.fanOuts = pace{rounds: 3, duration: 500 * time.Millisecond, warmUp: 50 * time.Millisecond}, 5
		repeat = 1
	}
	if rounds != 0 {
		o.pace.rounds = rounds
	}
	if duration != 0 {
		o.pace.duration = duration
	}
	if o.pace.most = most; most == 0 {
		o.pace.most = o.pace.rounds * repeat
	}
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

// chooseCells returns the cells of three comma-separated flags. Without callers, they are one and several, and many with
// small bodies over HTTP/1.1.
func chooseCells(sizes, callers, protocols string) ([]cell, error) {
	chosenProtocols, err := choose("--protocols", protocols, string(http1Protocol), string(http2Protocol))
	if err != nil {
		return nil, err
	}
	counts := []int{1, severalCallers}
	if callers != "" {
		if counts, err = numbers("--callers", callers, maxCallers); err != nil {
			return nil, err
		}
	}
	var cells, many []cell
	for size := range strings.SplitSeq(sizes, ",") {
		pl, err := newPayload(size)
		if err != nil {
			return nil, err
		}
		// Few callers first: memory of many callers is returned slowly, and would count for the next cells.
		for _, n := range counts {
			for _, p := range chosenProtocols {
				if p == string(http2Protocol) && n > limits.Streams {
					return nil, fmt.Errorf("%w: --callers: over HTTP/2, at most %d share a connection", errUsage, limits.Streams)
				}
				cells = append(cells, cell{payload: pl, callers: n, protocol: protocol(p)})
			}
		}
		if callers == "" && size == "S" && slices.Contains(chosenProtocols, string(http1Protocol)) {
			many = append(many, cell{payload: pl, callers: manyCallers, protocol: http1Protocol})
		}
	}
	return append(cells, many...), nil
}
