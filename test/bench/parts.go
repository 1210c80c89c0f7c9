// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/hookgate/hookgate/test/bench/report"
)

// measureCells measures the cells of the flags.
func (f *fleet) measureCells(ctx context.Context, o options, res *report.Result, stdout io.Writer) error {
	if !o.part(partCells) {
		return nil
	}
	measured := slices.DeleteFunc(slices.Clone(f.peers), func(p *peer) bool {
		return p.name != peerBaseline && !slices.Contains(o.peers, p.name)
	})
	for _, c := range o.cells {
		if err := f.measureCell(ctx, c, measured, f.peer(peerDirect), o.pace, res, stdout); err != nil {
			return err
		}
	}
	return nil
}

// measureREST2GRPC measures the cells of several callers over HTTP/1.1 again, with an extension that speaks gRPC.
func (f *fleet) measureREST2GRPC(ctx context.Context, o options, res *report.Result, stdout io.Writer) error {
	if len(f.rest2grpc) == 0 {
		return nil
	}
	for _, c := range o.cells {
		if c.callers != severalCallers || c.protocol != http1Protocol {
			continue
		}
		c.grpc = true
		peers := f.rest2grpc
		if len(c.body) > transcoded {
			peers = peers[len(peers)-1:]
		}
		if err := f.measureCell(ctx, c, peers, nil, o.pace, res, stdout); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) measureCell(
	ctx context.Context, c cell, peers []*peer, extension *peer, pc pace, res *report.Result, stdout io.Writer,
) error {
	cr, err := measureCell(ctx, c, peers, extension, pc, f.certs.caPEM)
	if err != nil {
		return err
	}
	if err := f.profileCell(ctx, c, peers, cr); err != nil {
		return err
	}
	res.Cells = append(res.Cells, cr)
	_, err = fmt.Fprintln(stdout, report.Cells(cr))
	return err
}

// measureFanOuts measures each number of handlers.
func (f *fleet) measureFanOuts(ctx context.Context, o options, res *report.Result, stdout io.Writer) error {
	if !o.part(partFanOut) || f.peer(peerGateway) == nil {
		return nil
	}
	for _, n := range o.handlers {
		fr, err := f.measureFanOut(ctx, o.hookgate, n, o.fanOuts)
		if err != nil {
			return err
		}
		res.FanOuts = append(res.FanOuts, fr)
	}
	_, err := fmt.Fprintln(stdout, report.FanOutTable(res.FanOuts...))
	return err
}

// measureConversions measures conversion if the size S is among the cells.
func (f *fleet) measureConversions(ctx context.Context, o options, res *report.Result, stdout io.Writer) (err error) {
	gateway := f.peer(peerGateway)
	if !o.part(partConversion) || gateway == nil || !slices.ContainsFunc(o.cells, func(c cell) bool { return c.size == "S" }) {
		return nil
	}
	res.Conversion, err = f.measureConversion(ctx, gateway, o.pace)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, res.Conversion.Table())
	return err
}
