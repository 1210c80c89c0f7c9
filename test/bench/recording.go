// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/test/bench/report"
)

// measureRecording measures what recording costs with S, if that is among the cells: a gateway that records its calls,
// and one that does not, take turns.
func (f *fleet) measureRecording(ctx context.Context, o options, res *report.Result, stdout io.Writer) error {
	if !o.part(partRecording) || f.peer(peerGateway) == nil ||
		!slices.ContainsFunc(o.cells, func(c cell) bool { return c.size == "S" }) {
		return nil
	}
	s, err := newPayload("S")
	if err != nil {
		return err
	}
	inner := &fleet{dir: f.dir, certs: f.certs, stderr: new(strings.Builder)}
	defer inner.stop()
	for _, record := range []bool{false, true} {
		if err := inner.startGateway(ctx, &inner.peers, gatewaySpec{
			name: peerGateway, binary: o.hookgate, record: record,
			extensions: map[string]string{extensionName: "https://" + f.peer(peerDirect).address},
		}); err != nil {
			return err
		}
	}
	r := &report.Recording{BodyBytes: len(s.body), Callers: severalCallers}
	c := cell{payload: s, callers: severalCallers, protocol: http1Protocol}
	if err := f.measureTurns(ctx, "recording", o.pace, turn{c, inner.peers[0], &r.Without}, turn{c, inner.peers[1], &r.With}); err != nil {
		return err
	}
	res.Recording = r
	_, err = fmt.Fprintln(stdout, r.Table())
	return err
}
