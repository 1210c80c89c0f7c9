// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// h2loadResult compares what h2load, another generator, says of a cell with what this program says.
type h2loadResult struct {
	Cell string `json:"cell"`
	Peer string `json:"peer"`
	// Rates are h2load's requests per second by round, of the peer and of the gateway.
	Rates        []float64 `json:"requestsPerSecond"`
	GatewayRates []float64 `json:"gatewayRequestsPerSecond"`
	// Own is the ratio of rates that this program has measured, the median, or 0 if it has not.
	Own float64 `json:"ownRatio"`
}

// measureH2load puts the load of h2load on ReverseProxy and the gateway in turn, in the cells of several callers.
func (f *fleet) measureH2load(ctx context.Context, o options, res *result, stdout io.Writer) error {
	const other = peerReverseProxy
	proxy, gateway := f.peer(other), f.peer(peerGateway)
	if !o.part(partH2load) || proxy == nil || gateway == nil {
		return nil
	}
	program, err := findProgram(o.h2load, "h2load")
	if err != nil {
		return err
	}
	if program == "" {
		return f.skip("h2load", "apt-get install nghttp2-client, or --h2load")
	}
	for _, c := range o.cells {
		if c.callers != severalCallers {
			continue
		}
		r := h2loadResult{Cell: c.String(), Peer: other}
		if own := res.cell(c); own != nil {
			r.Own = median(own.ratios(peerGateway, other, rateOf))
		}
		for range min(o.pace.rounds, 3) {
			for _, turn := range []struct {
				p     *peer
				rates *[]float64
			}{{proxy, &r.Rates}, {gateway, &r.GatewayRates}} {
				rate, err := runH2load(ctx, program, f.dir, c, turn.p, o.pace)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", c, turn.p.name, err)
				}
				*turn.rates = append(*turn.rates, rate)
			}
		}
		res.H2load = append(res.H2load, r)
	}
	return writeH2load(stdout, res.H2load)
}

// runH2load returns the rate of one round.
func runH2load(ctx context.Context, program, dir string, c cell, p *peer, pc pace) (float64, error) {
	body := filepath.Join(dir, "h2load-body")
	if err := os.WriteFile(body, c.body, 0o600); err != nil {
		return 0, err
	}
	// Callers over HTTP/2 share a connection, as elsewhere.
	shape := []string{"--h1", "-c", strconv.Itoa(c.callers)}
	if c.protocol == http2Protocol {
		shape = []string{"-c", "1", "-m", strconv.Itoa(c.callers)}
	}
	args := slices.Concat(shape, []string{"-t", "1", "-d", body, "-H", "Content-Type: application/json",
		"--warm-up-time", formatDuration(pc.warmUp), "-D", formatDuration(max(2*pc.duration, time.Second)),
		"https://" + p.address + p.path(c.hook, c.handler) + "?timeout=10s"})
	ctx, cancel := context.WithTimeout(ctx, callTimeout+4*pc.duration)
	defer cancel()
	output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("h2load: %w: %.500s", err, output)
	}
	return parseH2load(string(output))
}

// formatDuration formats d as h2load reads it, without fractions.
func formatDuration(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) + "ms" }

var (
	h2loadRate     = regexp.MustCompile(`(?m)^finished in [^,]+, ([0-9.]+) req/s`)
	h2loadRequests = regexp.MustCompile(`(?m)^requests: .* (\d+) failed, (\d+) errored, (\d+) timeout$`)
	h2loadStatuses = regexp.MustCompile(`(?m)^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$`)
)

// parseH2load returns the rate in h2load's report. It sees the status of answers only, so each has to be 2xx.
func parseH2load(report string) (float64, error) {
	rate, requests, statuses := h2loadRate.FindStringSubmatch(report), h2loadRequests.FindStringSubmatch(report),
		h2loadStatuses.FindStringSubmatch(report)
	if rate == nil || requests == nil || statuses == nil {
		return 0, fmt.Errorf("h2load: unknown report: %.500s", report)
	}
	if slices.ContainsFunc(slices.Concat(requests[1:], statuses[2:]), func(n string) bool { return n != "0" }) || statuses[1] == "0" {
		return 0, fmt.Errorf("h2load: %s; %s", requests[0], statuses[0])
	}
	return strconv.ParseFloat(rate[1], 64)
}

// writeH2load prints the rows.
func writeH2load(w io.Writer, results []h2loadResult) error {
	const row = "  %-30s %12s %12s %10s %13s %10s\n"
	var b strings.Builder
	b.WriteString("Cross-check: h2load as the generator of load, which is another program and reads the status of answers only\n")
	fmt.Fprintf(&b, row, "cell", peerReverseProxy, peerGateway, "ratio", "min-max", "ours")
	for _, r := range results {
		values := ratios(r.GatewayRates, r.Rates)
		fmt.Fprintf(&b, row, r.Cell, formatRate(median(r.Rates)), formatRate(median(r.GatewayRates)), formatRatio(median(values)),
			fmt.Sprintf("%.2f-%.2f", slices.Min(values), slices.Max(values)), formatRatio(r.Own))
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}
