// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
)

const sidecarURL = "grpc://127.0.0.1:9090"

// The registry is ready once the extension has answered, and says why it is not.
func TestRunIsReadyAfterTheFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		extensions, reg := discoverytest.NewExtensions(), registry.NewSidecar()
		s, err := New(Config{URL: sidecarURL, Registry: reg, Discoverer: extensions, Logger: (&discoverytest.Logs{}).Logger()})
		if err != nil {
			t.Fatal(err)
		}
		unready := func() string { return reg.Snapshot().Unready() }
		if got := unready(); got != "the extension beside the gateway has not answered yet" {
			t.Errorf("before Run: %q", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		if got := unready(); reg.Snapshot().Ready() || got != "the extension beside the gateway has not answered yet: call "+sidecarURL+": connection refused" {
			t.Errorf("while the extension is down: ready %t, %q", reg.Snapshot().Ready(), got)
		}
		extensions.Serve(sidecarURL, "v")
		time.Sleep(120 * time.Millisecond) // the first wait at its longest
		synctest.Wait()
		if !reg.Snapshot().Ready() {
			t.Error("not ready though the extension has answered")
		}
		names := func() (names []string) {
			for _, e := range reg.Snapshot().All() {
				names = append(names, e.Name)
			}
			return names
		}
		if diff := cmp.Diff([]string{"v"}, names()); diff != "" {
			t.Errorf("handlers keep their names (-want +got):\n%s", diff)
		}

		extensions.Serve(sidecarURL, "v", "w")
		time.Sleep(DefaultResync)
		synctest.Wait()
		if diff := cmp.Diff([]string{"v", "w"}, names()); diff != "" {
			t.Errorf("a new version is seen with the next discovery (-want +got):\n%s", diff)
		}
		extensions.Down(sidecarURL)
		time.Sleep(DefaultResync)
		synctest.Wait()
		if !reg.Snapshot().Ready() || len(names()) != 2 {
			t.Errorf("an extension that goes away keeps its handlers %v, ready %t", names(), reg.Snapshot().Ready())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		extensions := discoverytest.NewExtensions()
		s, err := New(Config{
			URL: sidecarURL, Registry: registry.NewSidecar(), Discoverer: extensions, Logger: (&discoverytest.Logs{}).Logger(), Resync: 10 * time.Second,
			Backoff: discovery.Backoff{BaseDelay: time.Second, Multiplier: 2, MaxDelay: 3 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		began := time.Now()
		go func() { ended <- s.Run(ctx) }()
		time.Sleep(8 * time.Second) // attempts after 0, 1, 3 and 6 s
		extensions.Serve(sidecarURL, "v")
		time.Sleep(2 * time.Second) // after 9 s
		extensions.Down(sidecarURL)
		time.Sleep(10500 * time.Millisecond) // after 19 and 20 s
		var got []time.Duration
		for _, at := range extensions.Calls(sidecarURL) {
			got = append(got, at.Sub(began)/time.Second)
		}
		if diff := cmp.Diff([]time.Duration{0, 1, 3, 6, 9, 19, 20}, got); diff != "" {
			t.Errorf("attempts after seconds (-want +got):\n%s", diff)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// Run ends while an attempt runs, which is no failure of the extension.
func TestRunEndsDuringAnAttempt(t *testing.T) {
	reg := registry.NewSidecar()
	began := make(chan struct{})
	extensions := discoverytest.NewExtensions()
	extensions.Set(sidecarURL, func(ctx context.Context) (extension.Discovered, error) {
		close(began)
		<-ctx.Done()
		return extension.Discovered{}, hook.Errorf(hook.Timeout, "no answer")
	})
	s, err := New(Config{URL: sidecarURL, Registry: reg, Discoverer: extensions, Logger: (&discoverytest.Logs{}).Logger()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if err := s.Run(ctx); err != nil || strings.Contains(reg.Snapshot().Unready(), "no answer") {
		t.Errorf("Run: %v, unready %q", err, reg.Snapshot().Unready())
	}
}

func TestCheckURL(t *testing.T) {
	for text, want := range map[string]string{
		"grpc://127.0.0.1:9090":     "",
		"grpc://[::1]:9090":         "",
		"unix:///run/x.sock":        "",
		"grpcs://a.example.com:443": "must begin with grpc:// or unix://: ",
		"https://a.example.com":     "must",
		"grpc://a.example.com:9090": "must be on loopback",
		"grpc://127.0.0.1":          "must have a port",
		"":                          "must begin with grpc:// or unix://: ",
	} {
		if err := CheckURL(text); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestNewRefusesIncompleteConfigs(t *testing.T) {
	valid := func() Config {
		return Config{URL: sidecarURL, Registry: registry.NewSidecar(), Discoverer: discoverytest.NewExtensions(), Logger: (&discoverytest.Logs{}).Logger()}
	}
	for name, change := range map[string]func(*Config){
		"URL":        func(c *Config) { c.URL = "https://a" },
		"Registry":   func(c *Config) { c.Registry = nil },
		"Discoverer": func(c *Config) { c.Discoverer = nil },
		"Logger":     func(c *Config) { c.Logger = nil },
		"Resync":     func(c *Config) { c.Resync = -1 },
		"Backoff":    func(c *Config) { c.Backoff.BaseDelay = 1 },
	} {
		c := valid()
		if change(&c); true {
			if _, err := New(c); err == nil || !strings.HasPrefix(err.Error(), "sidecar source: ") {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	s, err := New(valid())
	if err != nil || s.resync != DefaultResync || s.backoff != DefaultBackoff() {
		t.Errorf("defaults are %v and %v, %v", s.resync, s.backoff, err)
	}
	labels, known := s.NamespaceLabels("team")
	if diff := cmp.Diff(map[string]string{"kubernetes.io/metadata.name": "team"}, labels); diff != "" || !known {
		t.Errorf("labels, known %v (-want +got):\n%s", known, diff)
	}
}
