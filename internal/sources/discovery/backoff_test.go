// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/sources/discovery"
)

func TestDefaultBackoffStaysWithinBounds(t *testing.T) {
	d := discovery.DefaultBackoff().Delays()
	if first := d.Next(); first < 400*time.Millisecond || first > 600*time.Millisecond {
		t.Errorf("first wait is %v, want 0.5 s give or take a fifth", first)
	}
	var last time.Duration
	for range 100 {
		if last = d.Next(); last <= 0 || last > time.Minute {
			t.Fatalf("wait is %v, want at most 1 min and no end", last)
		}
	}
	if last < 48*time.Second {
		t.Errorf("wait is %v after 100 failures, want about 1 min", last)
	}
}

func TestBackoffCheck(t *testing.T) {
	for name, right := range map[string]discovery.Backoff{
		"Default": discovery.DefaultBackoff(),
		"Least":   {BaseDelay: 1, MaxDelay: 1, Multiplier: 1},
		"Jitter":  {BaseDelay: 1, MaxDelay: 2, Multiplier: 1, Jitter: 0.999},
	} {
		if err := right.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, wrong := range map[string]discovery.Backoff{
		"BaseDelay":  {Multiplier: 1, MaxDelay: 1},
		"MaxDelay":   {BaseDelay: 2, Multiplier: 1, MaxDelay: 1},
		"Multiplier": {BaseDelay: 1, MaxDelay: 1, Multiplier: 0.5},
		"Jitter":     {BaseDelay: 1, MaxDelay: 1, Multiplier: 1, Jitter: 1},
		"Negative":   {BaseDelay: 1, MaxDelay: 1, Multiplier: 1, Jitter: -0.1},
	} {
		if wrong.Check() == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
