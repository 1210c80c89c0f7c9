// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"

	"github.com/hookgate/hookgate/test/samples"
)

// conversionResult holds medians of the gateway's CPU time per call, in microseconds: for a handler without a policy,
// for one whose policy names the version that is sent, and for one that gets a converted Cluster.
type conversionResult struct {
	BodyBytes int     `json:"bodyBytes"`
	Callers   int     `json:"callers"`
	Plain     float64 `json:"plainCPUMicroseconds"`
	Same      float64 `json:"sameCPUMicroseconds"`
	Converted float64 `json:"convertedCPUMicroseconds"`

	// SameToPlain and ConvertedToPlain have a ratio for each round.
	SameToPlain      []float64 `json:"sameToPlain"`
	ConvertedToPlain []float64 `json:"convertedToPlain"`
}

// measureConversion compares calls with the same body to three handlers of one extension, which take turns.
func measureConversion(
	ctx context.Context, gateway, extension *peer, pc pace, caPEM []byte,
) (*conversionResult, error) {
	body := samples.S()
	res := &conversionResult{BodyBytes: len(body), Callers: 16}
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
	res.Plain, res.Same, res.Converted = median(plain), median(same), median(converted)
	res.SameToPlain, res.ConvertedToPlain = ratios(same, plain), ratios(converted, plain)
	return res, nil
}

// write prints the rows.
func (c *conversionResult) write(w io.Writer) error {
	_, err := fmt.Fprintf(w, `Conversion: CPU time of the gateway per lifecycle call, Cluster of %d bytes, %d callers, %s
  no policy says what the handler understands    %8s
  it understands what is sent                    %8s  %6.2f times
  it understands v1beta1, and gets it            %8s  %6.2f times

`, c.BodyBytes, c.Callers, http1Protocol, formatMicroseconds(c.Plain), formatMicroseconds(c.Same), median(c.SameToPlain),
		formatMicroseconds(c.Converted), median(c.ConvertedToPlain))
	return err
}
