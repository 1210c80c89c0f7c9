// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package bugreport

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// TestBounds adds files at the limit, one beyond, and beyond all files together.
func TestBounds(t *testing.T) {
	var a Archive
	a.Add("at", strings.Repeat("x", MaxFile))
	a.Add("beyond", strings.Repeat("x", MaxFile+1))
	for i := range limits.ReportBytes/MaxFile - 2 {
		a.Add(fmt.Sprintf("more-%d", i), strings.Repeat("x", MaxFile))
	}
	a.Add("none", "x")
	var out bytes.Buffer
	entries, err := a.Write(&out, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	notes, total := map[string]string{}, 0
	for _, e := range entries {
		notes[e.Name] = e.Note
		total += e.Size
	}
	if total != limits.ReportBytes {
		t.Errorf("%d bytes, want %d", total, limits.ReportBytes)
	}
	for name, want := range map[string]string{
		"at": "", "beyond": "only the first 8388608 of 8388609 bytes", "more-5": "", "none": "only the first 0 of 1 bytes",
	} {
		if notes[name] != want {
			t.Errorf("%s: note %q, want %q", name, notes[name], want)
		}
	}
}
