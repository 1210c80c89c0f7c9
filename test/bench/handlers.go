// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/samples"
)

// measureHandlers measures each number of handlers, with gateways of its own.
func (f *fleet) measureHandlers(ctx context.Context, o options, res *report.Result, stdout io.Writer) error {
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
	_, err := fmt.Fprintln(stdout, report.HandlerTable(res.Handlers...))
	return err
}

func (f *fleet) measureNumberOfHandlers(ctx context.Context, o options, n int) (*report.Handler, error) {
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
	res := &report.Handler{Handlers: n, Idle: quick.idle}
	of := func(p payload, callers int) cell { return cell{payload: p, callers: callers, protocol: http1Protocol} }
	return res, f.measureTurns(ctx, "handlers", o.pace, turn{of(beside, severalCallers), quick, &res.Beside},
		turn{of(all, 1), quick, &res.Quick}, turn{of(all, 1), slow, &res.Slow})
}
