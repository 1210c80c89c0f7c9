// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestSizesOfBodies(t *testing.T) {
	for size, limit := range map[string]int{
		"512B": 512, "1KB": 1000, "1KiB": 1024, "2500B": 2500, "64KB": 64000, "1MiB": 1 << 20,
	} {
		p, err := newPayload(size)
		if err != nil {
			t.Errorf("%s: %v", size, err)
			continue
		}
		// An item of templates takes 2.5 kB on average, and none takes 6.
		if got := len(p.body); got > limit || got < limit-limit/100-6000 || p.hook == hookS && got != limit {
			t.Errorf("%s: the body has %d bytes", size, got)
		}
		if !json.Valid(p.body) {
			t.Errorf("%s: the body is no JSON", size)
		}
	}
}

func TestSizesThatThereAreNot(t *testing.T) {
	for _, size := range []string{
		"", "s", "XL", "1", "KB", "1kB", "-1KB", "1.5KB", "511B", "20971521B", "21MiB", "99999999MiB", "99999999999999999999B",
	} {
		if p, err := newPayload(size); !errors.Is(err, errUsage) {
			t.Errorf("%q: %d bytes, %v", size, len(p.body), err)
		}
	}
}
