// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/samples"
)

// measureConversion compares calls with the same body to three handlers of one extension, which take turns.
func measureConversion(
	ctx context.Context, gateway, extension *peer, pc pace, caPEM []byte,
) (*report.Conversion, error) {
	body := samples.S()
	res := &report.Conversion{BodyBytes: len(body), Callers: 16}
	var plain, same, converted []float64
	for n := range pc.rounds {
		for _, turn := range []struct {
			handler string
			cpu     *[]float64
		}{{handlerS, &plain}, {handlerSame, &same}, {handlerConverted, &converted}} {
			c := cell{payload: payload{size: "S", hook: hookS, handler: turn.handler, body: body}, callers: res.Callers,
				protocol: http1Protocol}
			r, err := measureRound(ctx, c, gateway, extension, pc, caPEM)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				return nil, fmt.Errorf("conversion: handler %s: round %d: %w%s", turn.handler, n+1, err,
					gateway.complaint())
			}
			*turn.cpu = append(*turn.cpu, r.CPU)
		}
	}
	res.Plain, res.Same, res.Converted = report.Median(plain), report.Median(same), report.Median(converted)
	res.SameToPlain, res.ConvertedToPlain = report.Ratios(same, plain), report.Ratios(converted, plain)
	return res, nil
}
