// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookgate/hookgate/test/bench/report"
)

// profileTime is how long a peer is profiled in a cell: 100 samples for each second of CPU time.
const profileTime = 5 * time.Second

// maxProfile bounds what is read of a profile.
const maxProfile = 16 << 20

// profilePath is where Go programs serve the profile of their CPU time.
const profilePath = "/debug/pprof/profile"

// profiled serves its own profile beside h.
func profiled(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == profilePath {
			pprof.Profile(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// profileCell puts the load of the cell once more on each peer that has a profile, and keeps it in a file, whose name it
// adds to the result.
func (f *fleet) profileCell(ctx context.Context, c cell, peers []*peer, res *report.Cell) error {
	if f.profiles == "" {
		return nil
	}
	for i, p := range peers {
		if p.profiler == "" {
			continue
		}
		protocols := string(c.protocol)
		if c.grpc {
			protocols += "-grpc"
		}
		name := fmt.Sprintf("%s-%d-%s-%s.pprof", c.size, c.callers, protocols, strings.ToLower(p.name))
		if err := f.profilePeer(ctx, c, p, filepath.Join(f.profiles, name)); err != nil {
			return fmt.Errorf("%s: profile of %s: %w%s", c, p.name, err, p.complaint())
		}
		res.Peers[i].Profile = name
	}
	return nil
}

func (f *fleet) profilePeer(ctx context.Context, c cell, p *peer, file string) (err error) {
	callers, err := loadOf(c, p, f.certs.caPEM).open(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer closeAll(callers)
	done := make(chan error, 1)
	go func() { done <- f.fetchProfile(ctx, p, file, profileTime) }()
	// The load begins before the profile, and ends behind it.
	_, err = drive(ctx, callers, profileTime+time.Second)
	return errors.Join(err, <-done)
}

// fetchProfile writes the peer's profile of a time, in whole seconds, to a file.
func (f *fleet) fetchProfile(ctx context.Context, p *peer, file string, of time.Duration) error {
	client, err := newClient(f.certs.caPEM)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("%s%s?seconds=%d", p.profiler, profilePath, int(of.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	profile, err := io.ReadAll(io.LimitReader(response.Body, maxProfile))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %.300q", response.Status, profile)
	}
	return os.WriteFile(file, profile, 0o600)
}
