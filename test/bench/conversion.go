// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/samples"
)

// measureConversion compares calls with the same body to three handlers of one extension, which take turns.
func (f *fleet) measureConversion(ctx context.Context, gateway *peer, pc pace) (*report.Conversion, error) {
	body := samples.S()
	res := &report.Conversion{BodyBytes: len(body), Callers: 16}
	of := func(handler string) cell {
		return cell{payload: payload{size: "S", hook: hookS, handler: handler, body: body}, callers: res.Callers, protocol: http1Protocol}
	}
	var plain, same, converted report.Rounds
	if err := f.measureTurns(ctx, "conversion", pc, turn{of(handlerS), gateway, &plain}, turn{of(handlerSame), gateway, &same},
		turn{of(handlerConverted), gateway, &converted}); err != nil {
		return nil, err
	}
	res.Plain, res.Same, res.Converted = plain.Median(report.CPU), same.Median(report.CPU), converted.Median(report.CPU)
	res.SameToPlain = report.Ratios(same.Each(report.CPU), plain.Each(report.CPU))
	res.ConvertedToPlain = report.Ratios(converted.Each(report.CPU), plain.Each(report.CPU))
	return res, nil
}
