// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/samples"
)

// fanSize is how many handlers one extension of a fan-out has at most: fewer than may be called at the same time.
const fanSize = 250

// fanExtensions returns the URLs of extensions below path that have that many handlers together.
func fanExtensions(upstream, path string, handlers int) map[string]string {
	extensions := make(map[string]string)
	for i := 0; handlers > 0; i++ {
		n := min(handlers, fanSize)
		extensions[fmt.Sprintf("fan%d", i)] = fmt.Sprintf("https://%s%s%d", upstream, path, n)
		handlers -= n
	}
	return extensions
}

// openFan connects a caller of hookSlow.
func openFan(ctx context.Context, p *peer, path string, caPEM []byte) (caller, error) {
	l := load{
		address: p.address, caPEM: caPEM, path: path, body: samples.Body(hookSlow), callers: 1, protocol: http1Protocol,
	}
	cs, err := l.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("fan-out: connect to %s: %w", p.name, err)
	}
	return cs[0], nil
}

// measureFanOut compares a call to that many slow handlers, which a gateway of its own aggregates, with a call to one of
// them, with what Cluster API's own client does, one after the other, and with the floor: all of them called at the same
// time without anything between.
func (f *fleet) measureFanOut(ctx context.Context, binary string, handlers, times int) (*report.FanOut, error) {
	direct := f.peer(peerDirect)
	inner := &fleet{dir: f.dir, certs: f.certs, stderr: new(strings.Builder)}
	defer inner.stop()
	extensions := fanExtensions(direct.address, slowPath, handlers)
	extensions[extensionName] = "https://" + direct.address // answers when the peer is awaited
	if err := inner.startGateway(ctx, &inner.peers, gatewaySpec{name: peerGateway, binary: binary, extensions: extensions}); err != nil {
		return nil, err
	}
	gateway := inner.peers[0]

	var opened []caller
	defer func() { closeAll(opened) }()
	open := func(p *peer, path string) (caller, error) {
		c, err := openFan(ctx, p, path, f.certs.caPEM)
		if err == nil {
			opened = append(opened, c)
		}
		return c, err
	}
	one, err := open(gateway, hookPath(hookSlow, fanHandler(0)+".fan0"))
	if err != nil {
		return nil, err
	}
	all, err := open(gateway, hookPath(hookSlow, ""))
	if err != nil {
		return nil, err
	}
	var sequence []caller
	for i := range handlers {
		c, err := open(direct, slowPath+"1"+hookPath(hookSlow, fanHandler(i)))
		if err != nil {
			return nil, err
		}
		sequence = append(sequence, c)
	}

	res := &report.FanOut{Handlers: handlers, HandlerMilliseconds: float64(slowTime.Milliseconds()), Times: times}
	var ones, alls, sequences, directs, togethers []float64
	for n := range times + 1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		a, errOne := timeCalls(one)
		b, errAll := timeCalls(all)
		d, errDirect := timeCalls(sequence[0])
		e, errTogether := timeTogether(sequence)
		var c float64
		var errSequence error
		if n*handlers <= 200 { // which takes four seconds together
			c, errSequence = timeCalls(sequence...)
			sequences = append(sequences, c)
		}
		for _, e := range []struct {
			p   *peer
			err error
		}{{gateway, errOne}, {gateway, errAll}, {direct, errDirect}, {direct, errTogether}, {direct, errSequence}} {
			if e.err != nil {
				return nil, fmt.Errorf("fan-out: %s: %w%s", e.p.name, e.err, e.p.complaint())
			}
		}
		if n > 0 { // The first one warms up: it opens the gateway's connections.
			ones, alls = append(ones, a), append(alls, b)
			directs, togethers = append(directs, d), append(togethers, e)
		}
	}
	res.One, res.All, res.Sequential = report.Median(ones), report.Median(alls), report.Median(sequences)
	res.AllToOnes, res.SequentialToOne = report.Ratios(alls, ones), res.Sequential/res.One
	res.Together, res.TogetherToOnes = report.Median(togethers), report.Ratios(togethers, directs)
	return res, nil
}

// timeCalls makes one call after the other and returns the milliseconds that all took.
func timeCalls(cs ...caller) (float64, error) {
	start := time.Now()
	for _, c := range cs {
		if err := c.call(); err != nil {
			return 0, err
		}
	}
	return microseconds(time.Since(start)) / 1000, nil
}

// timeTogether makes all calls at the same time and returns the milliseconds that they took.
func timeTogether(cs []caller) (float64, error) {
	start := time.Now()
	var g errgroup.Group
	for _, c := range cs {
		g.Go(c.call)
	}
	err := g.Wait()
	return microseconds(time.Since(start)) / 1000, err
}
