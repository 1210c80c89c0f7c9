// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/test/samples"
)

// handlersResult is what a number of handlers costs: rounds of calls to another handler, which is registered beside them,
// and of calls to all of them, which answer at once or take slowTime.
type handlersResult struct {
	Handlers int `json:"handlers"`
	// Idle is the resident memory of the gateway before any load, in bytes.
	Idle   int64   `json:"idleResidentBytes"`
	Beside []round `json:"beside"`
	Quick  []round `json:"quick"`
	Slow   []round `json:"slow"`
}

// measureHandlers measures each number of handlers, with gateways of its own.
func (f *fleet) measureHandlers(ctx context.Context, o options, res *result, stdout io.Writer) error {
	if !o.part(partHandlers) || f.peer(peerGateway) == nil {
		return nil
	}
	for _, n := range o.handlers {
		h, err := f.measureNumberOfHandlers(ctx, o, n)
		if err != nil {
			return fmt.Errorf("%d handlers: %w", n, err)
		}
		res.Handlers = append(res.Handlers, h)
	}
	return writeHandlers(stdout, res.Handlers)
}

func (f *fleet) measureNumberOfHandlers(ctx context.Context, o options, n int) (*handlersResult, error) {
	inner := &fleet{dir: f.dir, certs: f.certs, stderr: new(strings.Builder)}
	defer inner.stop()
	direct := f.peer(peerDirect)
	for _, path := range []string{quickPath, slowPath} {
		extensions := fanExtensions(direct.address, path, n)
		extensions[extensionName] = "https://" + direct.address
		err := inner.startGateway(ctx, &inner.peers, gatewaySpec{name: peerGateway, binary: o.hookgate, extensions: extensions})
		if err != nil {
			return nil, err
		}
	}
	quick, slow := inner.peers[0], inner.peers[1]
	beside := payload{size: "S", hook: hookS, handler: handlerS, body: samples.S()}
	all := payload{size: "S", hook: hookSlow, body: samples.Body(hookSlow)}
	res := &handlersResult{Handlers: n, Idle: quick.idle}
	for range o.pace.rounds {
		for _, turn := range []struct {
			payload payload
			callers int
			p       *peer
			rounds  *[]round
		}{{beside, severalCallers, quick, &res.Beside}, {all, 1, quick, &res.Quick}, {all, 1, slow, &res.Slow}} {
			c := cell{payload: turn.payload, callers: turn.callers, protocol: http1Protocol}
			r, err := measureRound(ctx, c, turn.p, direct, o.pace, f.certs.caPEM)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("%w%s", err, turn.p.complaint())
			}
			*turn.rounds = append(*turn.rounds, r)
		}
	}
	return res, nil
}

// writeHandlers prints the rows.
func writeHandlers(w io.Writer, results []*handlersResult) error {
	const row = "  %10s %12s %16s %16s %18s %14s\n"
	var b strings.Builder
	fmt.Fprintf(&b, "Handlers: CPU time of the gateway, and time of a call to all of them, which take %v or no time\n", slowTime)
	fmt.Fprintf(&b, row, "registered", "idle RSS", "CPU beside them", "CPU of all", "CPU of one of all", "time, slow")
	for _, r := range results {
		each := func(rounds []round, figure func(round) float64) float64 {
			return median((&peerResult{Rounds: rounds}).each(figure))
		}
		all := each(r.Quick, cpuOf)
		fmt.Fprintf(&b, row, strconv.Itoa(r.Handlers), formatBytes(r.Idle), formatMicroseconds(each(r.Beside, cpuOf)),
			formatMicroseconds(all), formatMicroseconds(all/float64(r.Handlers)), formatMicroseconds(each(r.Slow, p50Of)))
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}
