// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
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
	type rounds = []round
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
			c := &cellResult{Size: "M", Callers: 16, Protocol: http1Protocol, Peers: []peerResult{
				{Peer: peerBaseline, Rounds: tc.baseline}, {Peer: peerGateway, Rounds: tc.gateway},
			}}
			if got := c.worse(); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestCompareNoticesASlowPeer compares proxies, of which one burns CPU time.
func TestCompareNoticesASlowPeer(t *testing.T) {
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
	if _, err := f.startSelf(t.Context(), &f.peers, peerGateway, append(proxy, "--burn", "2ms")...); err != nil {
		t.Fatal(err)
	}
	small, err := newPayload("S")
	if err != nil {
		t.Fatal(err)
	}
	cells := []cell{{payload: small, callers: 4, protocol: http1Protocol}}
	quick := pace{rounds: 3, duration: 100 * time.Millisecond}

	var output strings.Builder
	err = f.compare(t.Context(), cells, quick, &output)
	if err == nil || !strings.Contains(err.Error(), "S, 4 callers, HTTP/1.1: the CPU time of a call is ") {
		t.Errorf("a peer that takes 2 ms more for each call: %v\n%s", err, output.String())
	}
	if n := strings.Count(output.String(), "peer "); n != 2 {
		t.Errorf("%d tables were printed before it failed, want that of another try, too:\n%s", n, output.String())
	}

	// The other way round, the baseline is the slow one.
	f.peers[1].name, f.peers[2].name = peerGateway, peerBaseline
	output.Reset()
	if err := f.compare(t.Context(), cells, quick, &output); err != nil {
		t.Errorf("a peer that takes 2 ms less for each call: %v\n%s", err, output.String())
	}
}
