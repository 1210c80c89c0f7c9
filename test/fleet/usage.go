// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// usage is what the replicas have used and counted since they started.
type usage struct {
	cpu             time.Duration
	periods, waited int64
	calls           []float64          // by replica
	cache           map[string]float64 // by result
}

// usage reads what the replicas that are ready say.
func (s *service) usage(ctx context.Context) (usage, error) {
	s.mu.Lock()
	ready := slices.Clone(s.ready)
	s.mu.Unlock()
	u := usage{cache: map[string]float64{}}
	for _, r := range ready {
		cpu, err := process.CPUTime(r.pids)
		if err != nil {
			return u, err
		}
		u.cpu += cpu
		periods, waited := r.group.throttled()
		u.periods, u.waited = u.periods+periods, u.waited+waited
		if err := u.scrape(ctx, r.Diagnostics); err != nil {
			return u, err
		}
	}
	return u, nil
}

// scrape adds what a replica has counted.
func (u *usage) scrape(ctx context.Context, diagnostics string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+diagnostics+"/metrics", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	calls := 0.0
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue // a comment, or a metric without labels
		}
		if strings.HasPrefix(name, "hookgate_requests_total{") {
			calls += n
		}
		if strings.HasPrefix(name, "hookgate_handler_cache_answers_total{") {
			_, result, _ := strings.Cut(name, `result="`)
			result, _, _ = strings.Cut(result, `"`)
			u.cache[result] += n
		}
	}
	u.calls = append(u.calls, calls)
	return lines.Err()
}

// since returns what was used after an earlier look.
func (u usage) since(before usage) usage {
	d := usage{cpu: u.cpu - before.cpu, periods: u.periods - before.periods, waited: u.waited - before.waited,
		cache: map[string]float64{}}
	for i := range u.calls {
		d.calls = append(d.calls, u.calls[i]-before.calls[i])
	}
	for result, n := range u.cache {
		d.cache[result] = n - before.cache[result]
	}
	return d
}

// hits returns the part of the calls that the cache answered.
func (u usage) hits() float64 {
	saved := u.cache["hit"] + u.cache["shared"]
	if saved == 0 {
		return 0
	}
	return saved / (saved + u.cache["miss"])
}

// throttled returns the part of its periods in which a replica had to wait for its share of a processor.
func (u usage) throttled() float64 { return float64(u.waited) / float64(max(u.periods, 1)) }

// peak returns the most memory that a replica had at a time.
func (s *service) peak() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	most := s.most
	for _, r := range s.ready {
		most = max(most, r.stop())
		r.stop = process.WatchMemory(r.pids)
	}
	return most
}
