// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/bench/report"
)

// TestMain lets the tests start this program as a peer.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == peerCommand {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestWorse(t *testing.T) {
	type rounds = report.Rounds
	for name, tc := range map[string]struct {
		reason            string
		baseline, gateway rounds
		want              string
	}{
		"Equal": {reason: "nothing has changed", baseline: rounds{{Rate: 100, CPU: 100}}, gateway: rounds{{Rate: 100, CPU: 100}}},
		"Better": {
			reason: "an improvement is no regression", baseline: rounds{{Rate: 100, CPU: 100}}, gateway: rounds{{Rate: 300, CPU: 30}},
		},
		"AtTheLimit": {
			reason: "15 % are allowed", baseline: rounds{{Rate: 100, CPU: 100}, {Rate: 100, CPU: 100}},
			gateway: rounds{{Rate: 85, CPU: 114.9}, {Rate: 85, CPU: 300}},
		},
		"CPU": {
			reason: "16 % are not", baseline: rounds{{Rate: 100, CPU: 100}, {Rate: 100, CPU: 200}},
			gateway: rounds{{Rate: 100, CPU: 116}, {Rate: 100, CPU: 300}},
			want:    "M, 16 callers, HTTP/1.1: the CPU time of a call is 1.16-1.50 times the baseline's",
		},
		"Rate": {
			reason: "it may wait instead", baseline: rounds{{Rate: 100, CPU: 1}, {Rate: 50, CPU: 1}},
			gateway: rounds{{Rate: 84, CPU: 1}, {Rate: 30, CPU: 1}},
			want:    "M, 16 callers, HTTP/1.1: the rate is 0.60-0.84 times the baseline's",
		},
		"Both": {
			reason: "both are said", baseline: rounds{{Rate: 100, CPU: 1}}, gateway: rounds{{Rate: 50, CPU: 2}},
			want: "M, 16 callers, HTTP/1.1: the CPU time of a call is 2.00-2.00 times the baseline's, and the rate is 0.50-0.50 times the baseline's",
		},
		"Noise": {
			reason:   "one round of four that is as good shows that it can be",
			baseline: rounds{{Rate: 100, CPU: 100}, {Rate: 100, CPU: 100}, {Rate: 100, CPU: 100}, {Rate: 100, CPU: 100}},
			gateway:  rounds{{Rate: 50, CPU: 200}, {Rate: 50, CPU: 200}, {Rate: 99, CPU: 101}, {Rate: 50, CPU: 200}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &report.Cell{Size: "M", Callers: 16, Protocol: "h1", Peers: []report.Peer{
				{Peer: peerBaseline, Rounds: tc.baseline}, {Peer: peerGateway, Rounds: tc.gateway},
			}}
			if got := worseIn(c); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	const slow = ", 4 callers, HTTP/1.1: the rate is 0.50-0.50 times the baseline's"
	small, medium := cell{payload: payload{size: "S"}, callers: 4}, cell{payload: payload{size: "M"}, callers: 4}
	for name, tc := range map[string]struct {
		reason string
		rates  []float64 // of the gateway, where the baseline has 100, in the order of measurement
		err    string
	}{
		"Equal":     {reason: "nothing is measured twice", rates: []float64{100, 100}},
		"Noise":     {reason: "M is as good in its second attempt", rates: []float64{100, 50, 100}},
		"Worse":     {reason: "M is worse twice", rates: []float64{100, 50, 50}, err: "M" + slow},
		"BothWorse": {reason: "both are said", rates: []float64{50, 50, 50, 50}, err: "S" + slow + "\nM" + slow},
		"OneBetter": {reason: "S is as good in its second attempt", rates: []float64{50, 50, 100, 50}, err: "M" + slow},
		"NoAnswer":  {reason: "a peer that does not answer is not measured", rates: []float64{100}, err: "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			left := tc.rates
			measure := func(_ context.Context, c cell) (*report.Cell, error) {
				if len(left) == 0 {
					return nil, errors.New("connection refused")
				}
				rate := left[0]
				left = left[1:]
				return &report.Cell{Size: c.size, Callers: c.callers, Protocol: "h1", Peers: []report.Peer{
					{Peer: peerBaseline, Rounds: report.Rounds{{Rate: 100, CPU: 1}}}, {Peer: peerGateway, Rounds: report.Rounds{{Rate: rate, CPU: 1}}},
				}}, nil
			}
			var output strings.Builder
			err := compare(t.Context(), []cell{small, medium}, measure, &output)
			if got := fmt.Sprint(err); got != cmp.Or(tc.err, "<nil>") {
				t.Errorf("%s: %s, want %s\n%s", tc.reason, got, cmp.Or(tc.err, "<nil>"), output.String())
			}
			if len(left) != 0 {
				t.Errorf("%s: %d measurements were not made", tc.reason, len(left))
			}
			if n := strings.Count(output.String(), "| peer "); n != len(tc.rates) {
				t.Errorf("%s: %d tables, want one for each of %d measurements:\n%s", tc.reason, n, len(tc.rates), output.String())
			}
		})
	}
}

// TestMeasureCellSeesWork measures proxies, of which one hashes 32 MiB for each call: many times what a proxy does for
// it, on any machine.
func TestMeasureCellSeesWork(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("CPU time is read from Linux's /proc")
	}
	dir := t.TempDir()
	certs, err := newCertificates(dir)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{dir: dir, certs: certs, stderr: io.Discard}
	defer f.stop()
	upstream, err := f.startSelf(t.Context(), &f.peers, peerDirect)
	if err != nil {
		t.Fatal(err)
	}
	proxy := []string{"--upstream", "https://" + upstream, "--ca", certs.caFile}
	if _, err := f.startSelf(t.Context(), &f.peers, peerBaseline, proxy...); err != nil {
		t.Fatal(err)
	}
	if _, err := f.startSelf(t.Context(), &f.peers, peerGateway, append(proxy, "--work", "32")...); err != nil {
		t.Fatal(err)
	}
	small, err := newPayload("S")
	if err != nil {
		t.Fatal(err)
	}
	measure := f.against(pace{rounds: 2, duration: 200 * time.Millisecond})
	res, err := measure(t.Context(), cell{payload: small, callers: 1, protocol: http1Protocol})
	if err != nil {
		t.Fatal(err)
	}
	if ratios := res.Ratios(peerBaseline, report.CPU); len(ratios) != 2 || slices.Min(ratios) < 1+tolerance {
		t.Errorf("CPU time with the work is %.2f times that without it, want more than %.2f in both rounds", ratios, 1+tolerance)
	}
}
