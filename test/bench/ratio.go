// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/test/bench/report"
)

// tolerance is how much worse than the baseline the gateway may be, as a part.
const tolerance = 0.15

// ratioPace is that of a comparison in CI, with S, M and L over both protocols: a minute, or two if cells are measured
// again.
var ratioPace = pace{rounds: 5, duration: time.Second, warmUp: 200 * time.Millisecond}

// measurer measures the gateway and the baseline in a cell.
type measurer func(context.Context, cell) (*report.Cell, error)

// against returns a measurer of the fleet's gateway and baseline.
func (f *fleet) against(pc pace) measurer {
	return func(ctx context.Context, c cell) (*report.Cell, error) {
		peers := []*peer{f.peer(peerBaseline), f.peer(peerGateway)}
		return measureCell(ctx, c, peers, f.peer(peerDirect), pc, f.certs.caPEM)
	}
}

// compare fails if the gateway is worse than the baseline in a cell: beyond the tolerance in every round, and again in
// every round when the cell is measured once more. Noise, which is not so faithful, does not make it fail.
func compare(ctx context.Context, cells []cell, measure measurer, stdout io.Writer) error {
	for attempt := range 2 {
		var worse []cell
		var findings []error
		for _, c := range cells {
			res, err := measure(ctx, c)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintln(stdout, report.Cells(res)); err != nil {
				return err
			}
			if finding := worseIn(res); finding != "" {
				worse, findings = append(worse, c), append(findings, errors.New(finding))
			}
		}
		switch {
		case len(worse) == 0:
			_, err := fmt.Fprintf(stdout, "No cell is worse than the baseline by more than %.0f %% in all of its rounds.\n", tolerance*100)
			return err
		case attempt > 0:
			return errors.Join(findings...)
		}
		if _, err := fmt.Fprintf(stdout, "These are measured again, to be sure:\n%v\n\n", errors.Join(findings...)); err != nil {
			return err
		}
		cells = worse
	}
	return nil
}

// worseIn says in what the gateway is worse than the baseline beyond the tolerance in every round, or "" if in nothing.
func worseIn(c *report.Cell) string {
	var findings []string
	if cpu := c.Ratios(peerBaseline, report.CPU); len(cpu) > 0 && slices.Min(cpu) > 1+tolerance {
		findings = append(findings, fmt.Sprintf("the CPU time of a call is %.2f-%.2f times the baseline's", slices.Min(cpu), slices.Max(cpu)))
	}
	if rate := c.Ratios(peerBaseline, report.Rate); len(rate) > 0 && slices.Max(rate) < 1-tolerance {
		findings = append(findings, fmt.Sprintf("the rate is %.2f-%.2f times the baseline's", slices.Min(rate), slices.Max(rate)))
	}
	if len(findings) == 0 {
		return ""
	}
	return c.String() + ": " + strings.Join(findings, ", and ")
}
